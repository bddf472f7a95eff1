"""Boxes: autograd's name for the values that recorders track.

The box of an array is a tensor: `ArrayBox` is a class of which tensors are instances. The box of a
value of another registered class is an object that holds the value and a token, a tensor of shape
() that stands for it on tapes.
"""

from threading import local
from typing import Any

import numpy as np

from cytape.autodiff.custom.custom_gradient import stop_gradient
from cytape.numpy import conjugate
from cytape.ops.calls.symbolic import graph_for
from cytape.tensor.making import convert_to_tensor
from cytape.tensor.nest import map_structure
from cytape.tensor.tensor import Tensor, data_of, tensor_of
from cytape.tensor.tensor_methods import install_methods


class _BoxType(type):
    """The class of `Box` and `ArrayBox`, of which tensors are instances."""

    def __instancecheck__(cls, x):
        return issubclass(type(x), cls)

    def __subclasscheck__(cls, kind):
        return type.__subclasscheck__(cls, kind) or (
            cls in (Box, ArrayBox) and issubclass(kind, Tensor))

    def __eq__(cls, other):  # type(x) == ArrayBox
        return cls is other or other is Tensor and cls is ArrayBox

    def __hash__(cls):
        return hash(Tensor) if cls is ArrayBox else type.__hash__(cls)


class Box(metaclass=_BoxType):
    """Base class of values that are differentiated.

    A subclass is the box of the values whose class it is registered for.

    Parameters
    ----------
    value : object
    trace : int
        Ignored.
    node : Tensor
        The value's token.

    Examples
    --------
    >>> import cytape
    >>> from cytape.autograd.extend import Box
    >>> float(cytape.grad(lambda x: x * isinstance(x, Box))(2.0))
    1.0
    """

    __slots__ = ["_node", "_trace", "_value"]
    type_mappings: dict[type, type] = {}
    types: set[type] = set()

    def __init__(self, value, trace, node):
        self._value, self._trace, self._node = value, trace, node

    def __bool__(self):
        return bool(self._value)

    def __str__(self):
        return f"Autograd {type(self).__name__} with value {self._value}"

    @classmethod
    def register(cls, value_type):
        """Make this the class of boxes of values of a type."""
        Box.types.add(cls)
        Box.type_mappings[value_type] = Box.type_mappings[cls] = cls


class ArrayBox(Box):
    """The class of which tensors are instances."""

    __slots__ = []


for _kind in (np.ndarray, float, np.longdouble, np.float64, np.float32, np.float16, complex,
              np.clongdouble, np.complex128, np.complex64):
    ArrayBox.register(_kind)
install_methods({"_value": property(lambda x: getval(x)), "_node": property(lambda x: x.id),
                 "_trace": property(lambda x: 0)})


vspaces: dict[type, Any] = {}  # the makers of vector spaces by the types of values


def isbox(x):
    """Return whether a value is a tensor or another box."""
    return isinstance(x, Box)


def getval(x):
    """Return the value of a box, without derivative; any other value unchanged."""
    if not isinstance(x, Tensor):
        return getval(x._value) if isinstance(x, Box) else x
    return stop_gradient(x) if graph_for([x]) is not None else data_of(x)[()]


def new_box(value, trace, node):
    """Return the box of a value; TypeError if its class has no boxes."""
    kind = box_class(value)
    return convert_to_tensor(np.array(value)) if kind is ArrayBox else kind(value, trace, node)


def box_class(value):
    """Return the class of a value's boxes; TypeError if it has none."""
    kind = ArrayBox if isinstance(value, Tensor) else Box.type_mappings.get(type(value))
    if kind is None:
        raise TypeError(f"Can't differentiate w.r.t. type {type(value)}")
    return kind


def vspace(value):
    """Return the vector space of a value; of a box, that of its value."""
    maker = vspaces.get(type(value))
    if maker is not None:
        return maker(value)
    if isbox(value):
        return vspace(getval(value))
    raise TypeError(f"Can't find vector space for value {value} of type {type(value)}. "
                    f"Valid types are {vspaces.keys()}")


def token_of(box):
    """Return the tensor that stands for a box on tapes."""
    return box if isinstance(box, Tensor) else box._node


def boxed(value):
    """Return a new box of a value, with a new token."""
    return new_box(value, 0, tensor_of(np.zeros(())))


def conjugated(structure):
    """Return the complex conjugate of all complex leaves: autograd's gradients from cytape's."""
    return map_structure(
        lambda x: conjugate(x) if getattr(x, "dtype", np.dtype(float)).kind == "c"
        or type(x) is complex else x, structure)


class _Pending(local):
    """Gradients of values of users' classes by the ids of their tokens; one dict per backward pass.

    The first dict is of backward passes that `make_vjp` did not begin.
    """

    def __init__(self):
        self.passes = [{}]

    def add(self, token_id, gradient):
        before = self.passes[-1].get(token_id)
        self.passes[-1][token_id] = gradient if before is None else (
            vspace(gradient).add(before, gradient))


pending = _Pending()


class SparseObject:
    """A gradient that is added in place, say of an indexed array.

    Parameters
    ----------
    vs : VSpace
        Of the dense gradient.
    mut_add : callable
        Adds this gradient to a dense one, in place, and returns the sum.
    """

    __slots__ = ["mut_add", "vs"]

    def __init__(self, vs, mut_add):
        self.vs, self.mut_add = vs, mut_add
