"""Python's types and type tests on tensors, and the vector spaces of lists, tuples and dicts."""

import builtins

import numpy as np

from cytape.autograd.core import VSpace, vspace
from cytape.autograd.tracer import Box, getval
from cytape.tensor.nest import with_children
from cytape.tensor.tensor import Tensor

# Lists, tuples and dicts of tensors are Python's own.
list, tuple, dict = list_, tuple_, dict_ = builtins.list, builtins.tuple, builtins.dict
isinstance_, type_ = builtins.isinstance, builtins.type


def type(x):  # noqa: A001
    """Return the type of a value; that of the array or number for a tensor.

    Examples
    --------
    >>> import cytape
    >>> type(cytape.constant([1.0])).__name__, type(cytape.constant(1.0)).__name__, type([])
    ('ndarray', 'float64', <class 'list'>)
    """
    if isinstance_(x, Tensor):  # its value may be unknown
        return np.ndarray if x.ndim else x.dtype.type
    return type_(getval(x))


def isinstance(x, classinfo):  # noqa: A001
    """Return whether a value is an instance of a type; a tensor is one of its array's type.

    Examples
    --------
    >>> import cytape
    >>> isinstance(cytape.constant([1.0]), np.ndarray), isinstance(cytape.constant(1.0), float)
    (True, True)
    """
    return issubclass(type(x), classinfo) if isinstance_(x, Box) else isinstance_(x, classinfo)


def container_take(A, idx):
    """Return an item of a list, tuple or dict."""
    return A[idx]


def make_sequence(seq_type, *args):
    """Return a list or a tuple of values."""
    return seq_type(args)


class _ContainerBoxes(type_(Box)):  # type: ignore[misc]
    def __instancecheck__(cls, x):
        return isinstance_(x, cls.containers)


class SequenceBox(Box, metaclass=_ContainerBoxes):
    """A class of which all lists and tuples are instances."""

    containers = (list_, tuple_)


class DictBox(Box, metaclass=_ContainerBoxes):
    """A class of which all dicts are instances."""

    containers = (dict_,)


class ContainerVSpace(VSpace):
    """The product of the spaces of a container's items."""

    def __init__(self, value):
        self.shape = with_children(value, list_(map(vspace, _items(value, value))))

    def _map(self, f, *args):
        items = [_items(x, self.shape) for x in (self.shape, *args)]
        return with_children(self.shape, list_(map(f, *items)))

    @property
    def size(self):
        """The dimension of the space."""
        return sum([space.size for space in _items(self.shape, self.shape)])

    def zeros(self):
        """Return a container of zeros."""
        return self._map(lambda space: space.zeros())

    def ones(self):
        """Return the sum of the standard basis."""
        return self._map(lambda space: space.ones())

    def randn(self):
        """Return a container of standard normal numbers."""
        return self._map(lambda space: space.randn())

    def standard_basis(self):
        """Yield the containers that are zero but for one element."""
        for i, space in enumerate(_items(self.shape, self.shape)):
            for vector in space.standard_basis():
                items = _items(self.zeros(), self.shape)
                yield with_children(self.shape, [*items[:i], vector, *items[i + 1:]])

    def _add(self, xs, ys):
        return self._map(lambda space, x, y: space._add(x, y), xs, ys)

    def _mut_add(self, xs, ys):
        return self._map(lambda space, x, y: space._mut_add(x, y), xs, ys)

    def _scalar_mul(self, xs, a):
        return self._map(lambda space, x: space._scalar_mul(x, a), xs)

    def _inner_prod(self, xs, ys):
        products = self._map(lambda space, x, y: space._inner_prod(x, y), xs, ys)
        return sum(_items(products, self.shape))

    def _covector(self, xs):
        return self._map(lambda space, x: space._covector(x), xs)


def _items(container, like):
    """Return the items of a container, in the order of another one with the same keys."""
    return [container[key] for key in like] if isinstance_(like, dict_) else list_(container)


class SequenceVSpace(ContainerVSpace):
    """The product of the spaces of a list's or a tuple's items."""


class ListVSpace(SequenceVSpace):
    """The product of the spaces of a list's items."""


class TupleVSpace(SequenceVSpace):
    """The product of the spaces of a tuple's items."""


class NamedTupleVSpace(TupleVSpace):
    """The product of the spaces of a named tuple's items."""


class DictVSpace(ContainerVSpace):
    """The product of the spaces of a dict's values."""


ListVSpace.register(list_)
TupleVSpace.register(tuple_)
DictVSpace.register(dict_)
