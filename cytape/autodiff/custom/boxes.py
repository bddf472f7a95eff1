"""Boxes, autograd's name for the values that recorders track, and primitives, which make them.

The box of an array is a tensor: `ArrayBox` is a class of which tensors are instances. The box of a
value of another registered class is an object that holds the value and a token, a tensor of shape
() that stands for it on tapes.
"""

from __future__ import annotations

import functools
import types
from threading import local
from typing import Any

import numpy as np

from cytape.autodiff.custom.custom_gradient import stop_gradient
from cytape.autodiff.custom.primitive_in_graph import (
    as_floats,
    call_in_graph,
    flattened,
    observing,
    standing_still,
)
from cytape.autodiff.custom.primitive_op import PrimitiveOp
from cytape.ops.calls.symbolic import graph_for
from cytape.ops.elementwise import conjugate
from cytape.ops.engine.custom_op import GradientsIfNeeded, record_custom
from cytape.ops.engine.index_op import is_symbol
from cytape.tensor.making import convert_to_tensor
from cytape.tensor.nest import flatten, map_structure, pack_sequence_as
from cytape.tensor.recording.state import is_transposed, possible_gradient_types
from cytape.tensor.tensor import Tensor, data_of, restored, tensor_of, without_handle
from cytape.tensor.tensor_methods import install_methods
from cytape.tensor.values.plain_arrays import box_types
from cytape.tensor.variable import Variable


class _BoxType(type):
    """The class of `Box` and `ArrayBox`, of which tensors are instances."""

    def __instancecheck__(cls, x: Any) -> bool:
        return issubclass(type(x), cls)

    def __subclasscheck__(cls, kind: Any) -> bool:
        return type.__subclasscheck__(cls, kind) or (
            cls in (Box, ArrayBox) and issubclass(kind, Tensor))

    def __eq__(cls, other: Any) -> bool:  # type(x) == ArrayBox
        return cls is other or other is Tensor and cls is ArrayBox

    def __hash__(cls) -> int:
        return hash(Tensor) if cls is ArrayBox else type.__hash__(cls)

    def __setattr__(cls, name: str, value: Any) -> None:
        if cls is ArrayBox:  # its instances are tensors
            install_methods({name: value})
        super().__setattr__(name, value)


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
    type_mappings: dict[type, type] = box_types
    types: set[type] = set()

    def __init__(self, value: Any, trace: Any, node: Any) -> None:
        self._value, self._trace, self._node = value, trace, node

    def __bool__(self) -> bool:
        return bool(self._value)

    def __str__(self) -> str:
        return f"Autograd {type(self).__name__} with value {self._value}"

    @classmethod
    def register(cls, value_type: Any) -> None:
        """Make this the class of boxes of values of a type."""
        Box.types.add(cls)
        Box.type_mappings[value_type] = Box.type_mappings[cls] = cls


class ArrayBox(Box):
    """The class of which tensors are instances; a call takes the derivative from the node."""

    __slots__ = []

    def __new__(cls, value: Any, trace: Any, node: Any) -> Any:  # noqa: D102
        if not isinstance(node, Tensor):
            return convert_to_tensor(np.array(value))
        shift = value - detached(node)
        return node + shift if np.any(shift) else node


ARRAY_TYPES = (np.ndarray, float, np.longdouble, np.float64, np.float32, np.float16, complex,
               np.clongdouble, np.complex128, np.complex64)
for _kind in ARRAY_TYPES:
    ArrayBox.register(_kind)
install_methods({"_value": property(lambda x: getval(x)), "_node": property(lambda x: x),
                 "_trace": property(lambda x: 0)})


vspaces: dict[type, Any] = {}  # the makers of vector spaces by the types of values


def isbox(x: Any) -> bool:
    """Return whether a value is a tensor or another box."""
    return isinstance(x, Tensor) or type(x) in Box.types


def getval(x: Any) -> Any:
    """Return the value of a box, without derivative; any other value unchanged.

    Forward mode that transposes a rule of reverse mode raises for values of the rule's gradient.
    """
    if _follows_transpose(x):
        raise _not_transposable("takes the value of its gradient from the box")
    return detached(x)


def detached(x: Any) -> Any:
    """Return the value of a box; any other value unchanged."""
    if not isinstance(x, Tensor):
        return detached(x._value) if type(x) in Box.types else x
    return stop_gradient(x) if graph_for([x]) is not None else data_of(x)[()]


def _follows_transpose(x: Any) -> bool:
    return isinstance(x, Tensor) and is_transposed(x.id)


def _not_transposable(reason: str) -> NotImplementedError:
    return NotImplementedError(
        f"JVP of a primitive is not defined, and its VJP cannot be transposed: it {reason}. Give "
        "the primitive a rule by defjvp")


def new_box(value: Any, trace: Any, node: Any) -> Any:
    """Return the box of a value; TypeError if its class has no boxes."""
    return box_class(value)(value, trace, node)


def box_class(value: Any) -> Any:
    """Return the class of a value's boxes; TypeError if it has none."""
    maker = ArrayBox if isinstance(value, Tensor) else Box.type_mappings.get(type(value))
    if maker is None:
        raise TypeError(f"Can't differentiate w.r.t. type {type(value)}")
    kind = maker if isinstance(maker, type) else type(maker(value, 0, None))
    return ArrayBox if issubclass(kind, ArrayBox) else kind  # subclasses of arrays are tensors, too


def vspace(value: Any) -> Any:
    """Return the vector space of a value; of a box, that of its value."""
    kind = type(value)
    if isinstance(value, Tensor):  # whose value may be unknown
        kind = np.ndarray if value.ndim else value.dtype.type
    if kind in vspaces:
        return vspaces[kind](value)
    if isbox(value) and not isinstance(value, Tensor):
        return vspace(detached(value))
    raise TypeError(f"Can't find vector space for value {value} of type {kind}. "
                    f"Valid types are {vspaces.keys()}")


def token_of(box: Any) -> Tensor:
    """Return the tensor that stands for a box on tapes."""
    return box if isinstance(box, Tensor) else box._node


def boxed(value: Any) -> Any:
    """Return a new box of a value, with a new token."""
    if box_class(value) is ArrayBox:
        return ArrayBox(value, 0, None)
    return Box.type_mappings[type(value)](value, 0, tensor_of(np.zeros(())))


def conjugated(structure: Any) -> Any:
    """Return the complex conjugate of all complex leaves: autograd's gradients from cytape's."""
    return map_structure(
        lambda x: conjugate(x) if getattr(x, "dtype", np.dtype(float)).kind == "c"
        or type(x) is complex else x, structure)


class _Pending(local):
    """Gradients of values of users' classes by the ids of their tokens; one dict per backward pass.

    The first dict is of backward passes that `make_vjp` did not begin.
    """

    def __init__(self) -> None:
        self.passes: list[dict] = [{}]

    def add(self, token_id: Any, gradient: Any) -> None:
        before = self.passes[-1].get(token_id)
        self.passes[-1][token_id] = gradient if before is None else (
            vspace(gradient).add(before, gradient))

    def take(self, token_id: Any, value: Any) -> Any:
        found = self.passes[-1].pop(token_id, None)
        return vspace(value).zeros() if found is None else found


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

    def __init__(self, vs: Any, mut_add: Any) -> None:
        self.vs, self.mut_add = vs, mut_add


class _Kept:
    """A box without its handle, which would keep the trace on tapes alive."""

    __slots__ = ["_held", "_kind", "value"]

    def __init__(self, box: Any) -> None:
        self.value, self._kind, self._held = detached(box), type(box), without_handle(token_of(box))

    def seen(self, observed: Any) -> Any:
        """Return the value, or a box that recorders track as they tracked the given one."""
        if not observed:
            return self.value
        token = restored(self._held)
        return token if self._kind is Tensor else self._kind(self.value, 0, token)

    def pending_id(self) -> Any:
        """Return the id by which `pending` has the gradient; None for an array."""
        return None if self._kind is Tensor else restored(self._held).id


def seen(structure: Any, observed: Any) -> Any:
    """Return a structure with values, or with boxes if recorders observe the caller."""
    return map_structure(
        lambda x: x.seen(observed) if type(x) is _Kept else x, structure)


class Call:
    """A call of a primitive that recorders track."""

    def __init__(self, op: Any, args: Any, kwargs: Any) -> None:
        self.op, self.kwargs = op, kwargs
        self.args = map_structure(lambda x: _Kept(x) if isbox(x) else x, args)
        self.argnum_of = [i for i, arg in enumerate(args) for x in flatten(arg) if isbox(x)]

    def record(self, outputs: Any, tokens: Any) -> Any:
        """Record the call, whose results are given boxes; return these."""
        self.ans = map_structure(_Kept, outputs)
        self.tracked = self.op.tracked(self.argnum_of, tokens)
        if self.tracked:  # at once: the rule may read what the function left behind
            self.vjps = self.op.vjps(
                self.tracked, seen(self.ans, False), seen(self.args, False), self.kwargs)
        record_custom(self.op.name, [token_of(x) for x in flatten(outputs)], tokens,
                      self.backward, self.jvp)
        return outputs

    def backward(self, *gradients: Any) -> Any:
        """Return the gradients of the boxes among the arguments, computed if needed."""
        observed = observing(gradients)
        results = flatten(self.ans)
        ids = [kept.pending_id() for kept in results]
        g = pack_sequence_as(self.ans, [
            (g if observed else detached(g)) if id is None else pending.take(id, kept.value)
            for g, id, kept in zip(gradients, ids, results, strict=True)])

        def computed(needed: Any) -> Any:
            argnums = tuple(sorted(
                {n for n, is_needed in zip(self.argnum_of, needed, strict=True) if is_needed}))
            if not observed and set(argnums) <= set(self.tracked):
                argnums, found = self.tracked, self.op.pulled(self.vjps, g)
            else:
                found = self.op.gradients(argnums, seen(self.ans, observed),
                                          seen(self.args, observed), self.kwargs, g)
            found = flattened(self.args, argnums, found)
            return [_given(kept, x) for kept, x in zip(flatten(self.args), found, strict=True)
                    if type(kept) is _Kept]

        return GradientsIfNeeded(computed)

    def jvp(self, *tangents: Any) -> Any:
        """Return the tangents of the results; NotImplemented to transpose the other rule."""
        if any([type(x) is _Kept and x.pending_id() for x in flatten((self.args, self.ans))]):
            raise NotImplementedError(
                f"JVP of {self.op.name} is not defined for values of users' classes: use "
                "make_jvp_reversemode")
        observed = observing(tangents)
        remaining = iter(tangents)
        moving = map_structure(
            lambda x: next(remaining) if type(x) is _Kept else standing_still(x), self.args)
        argnums = tuple(sorted(set(self.argnum_of)))
        call = seen(self.ans, observed), seen(self.args, observed), self.kwargs
        if self.op.jvps is None:
            return NotImplemented
        gs = [moving[i] if observed else map_structure(detached, moving[i]) for i in argnums]
        return flatten(self.op.jvps(argnums, gs, *call))


def _given(kept: Any, gradient: Any) -> Any:
    """Return a gradient for the tape; one of a user's class is added to the pending ones."""
    if gradient is None or kept.pending_id() is None:
        return gradient
    pending.add(kept.pending_id(), gradient)
    return np.zeros(())


class primitive(PrimitiveOp):
    """Make a function whose derivative is given by rules: see `defvjp` and `defjvp`.

    Parameters
    ----------
    fun : callable
        Takes plain arrays: in a call with tensors it gets their values.

    Examples
    --------
    >>> from cytape import grad
    >>> from cytape.autograd.extend import defvjp, primitive
    >>> @primitive
    ... def cube(x):
    ...     return x**3
    >>> defvjp(cube, lambda ans, x: lambda g: 3 * x**2 * g)
    >>> float(grad(cube)(2.0)), float(grad(grad(cube))(2.0))
    (12.0, 12.0)
    """

    _is_autograd_primitive = True

    def __init__(self, fun: Any) -> None:
        super().__init__(getattr(fun, "__name__", type(fun).__name__), fun)
        functools.update_wrapper(self, fun, updated=())
        self.box_types = Box.types

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    def __reduce__(self) -> str:
        return self.__qualname__

    def call_in_general(self, args: Any, kwargs: Any) -> Any:
        """Call the function with plain values for boxes in any places, and record the call."""
        args = map_structure(lambda x: x.value() if isinstance(x, Variable) else x, args)
        tokens = [token_of(x) for x in flatten(args) if isbox(x)]
        if not tokens:
            return self.fun(*args, **kwargs)
        if graph_for(tokens) is not None:
            return call_in_graph(self, args, kwargs)
        return self.box_result(self.fun(*map_structure(detached, args), **kwargs), args, kwargs)

    def box_result(self, ans: Any, args: Any, kwargs: Any) -> Any:
        """Return the boxes of the results of a call, after recording it."""
        tokens = [token_of(x) for x in flatten(args) if isbox(x)]
        if possible_gradient_types(tokens):
            ans = as_floats(ans)
        elif any(type(x) not in Box.type_mappings for x in flatten(ans)):
            return ans
        return Call(self, args, kwargs).record(map_structure(boxed, ans), tokens)

    def gradients(self, argnums: Any, ans: Any, args: Any, kwargs: Any, g: Any) -> Any:
        """Return the gradients of arguments by the user's rule, in cytape's convention."""
        if self.vjps is None:
            raise self.not_defined(argnums)
        found = self.pulled(self.vjps(argnums, ans, args, kwargs), g)
        if any(map(_follows_transpose, flatten(g))) and any([
                not (_follows_transpose(x) or is_symbol(x)) and np.any(detached(x))
                for x in flatten(found)]):
            raise _not_transposable("returns numbers that do not depend on its gradient")
        return found

    def pulled(self, vjps: Any, g: Any) -> Any:
        """Return the gradients of arguments by a function that the rule made."""
        return [map_structure(lambda x: conjugated(self.dense(x)), gradient)
                for gradient in vjps(conjugated(g))]

    @staticmethod
    def dense(gradient: Any) -> Any:
        """Return a gradient as an array or an element of a user's vector space."""
        if type(gradient) is SparseObject:
            return gradient.mut_add(gradient.vs.zeros())
        return np.asarray(gradient) if isinstance(gradient, np.ndarray) else gradient
