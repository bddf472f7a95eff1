"""Python's types and type tests on tensors, and the vector spaces of lists, tuples and dicts."""

import builtins
from collections.abc import Callable
from typing import Any

import numpy as np

from cytape.autograd.core import VSpace, vspace
from cytape.autograd.tracer import Box, getval
from cytape.autograd.util import subval
from cytape.tensor.tensor import Tensor

__all__ = [
    "ContainerVSpace", "DictBox", "DictVSpace", "ListVSpace", "NamedTupleVSpace", "SequenceBox",
    "SequenceVSpace", "TupleVSpace", "container_take", "dict", "isinstance", "list",
    "make_sequence", "tuple", "type",
]  # fmt: skip

# Lists, tuples and dicts of tensors are Python's own.
list, tuple, dict = list_, tuple_, dict_ = builtins.list, builtins.tuple, builtins.dict
isinstance_, type_ = builtins.isinstance, builtins.type


def type(x: Any) -> builtins.type:  # noqa: A001
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


def isinstance(x: Any, classinfo: Any) -> bool:  # noqa: A001
    """Return whether a value is an instance of a type; a tensor is one of its array's type.

    Examples
    --------
    >>> import cytape
    >>> isinstance(cytape.constant([1.0]), np.ndarray), isinstance(cytape.constant(1.0), float)
    (True, True)
    """
    return issubclass(type(x), classinfo) if isinstance_(x, Box) else isinstance_(x, classinfo)


def container_take(A: Any, idx: Any) -> Any:
    """Return an item of a list, tuple or dict."""
    return A[idx]


def make_sequence(seq_type: Callable, *args: Any) -> Any:
    """Return a list or a tuple of values."""
    return seq_type(args)


class _ContainerBoxes(type_(Box)):  # type: ignore[misc]
    def __instancecheck__(cls, x: Any) -> bool:
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
        self.shape = value
        self.shape = self._map(vspace)

    @property
    def size(self):
        """The dimension of the space."""
        return sum([space.size for space in self._values(self.shape)])

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
        for key, space in self._kv_pairs(self.shape):
            for vector in space.standard_basis():
                yield self._subval(self.zeros(), key, vector)

    def _add(self, xs, ys):
        return self._map(lambda space, x, y: space._add(x, y), xs, ys)

    def _mut_add(self, xs, ys):
        return self._map(lambda space, x, y: space._mut_add(x, y), xs, ys)

    def _scalar_mul(self, xs, a):
        return self._map(lambda space, x: space._scalar_mul(x, a), xs)

    def _inner_prod(self, xs, ys):
        products = self._map(lambda space, x, y: space._inner_prod(x, y), xs, ys)
        return sum(self._values(products))

    def _covector(self, xs):
        return self._map(lambda space, x: space._covector(x), xs)


class SequenceVSpace(ContainerVSpace):
    """The product of the spaces of the items of a list or a tuple."""

    def _values(self, x):
        return x

    def _kv_pairs(self, x):
        return enumerate(x)

    def _map(self, f, *args):
        return self.seq_type(map(f, self.shape, *args))

    def _subval(self, xs, idx, x):
        return self.seq_type(subval(xs, idx, x))


class ListVSpace(SequenceVSpace):
    """The product of the spaces of a list's items."""

    seq_type = list_


class TupleVSpace(SequenceVSpace):
    """The product of the spaces of a tuple's items."""

    seq_type = tuple_


class NamedTupleVSpace(SequenceVSpace):
    """The product of the spaces of a named tuple's items; subclasses have the type."""

    def _map(self, f, *args):
        return self.seq_type(*map(f, self.shape, *args))

    def _subval(self, xs, idx, x):
        return self.seq_type(*subval(xs, idx, x))


class DictVSpace(ContainerVSpace):
    """The product of the spaces of a dict's values."""

    def _values(self, x):
        return x.values()

    def _kv_pairs(self, x):
        return x.items()

    def _map(self, f, *args):
        return {key: f(space, *[x[key] for x in args]) for key, space in self.shape.items()}

    def _subval(self, xs, idx, x):
        return {**xs, idx: x}


ListVSpace.register(list_)
TupleVSpace.register(tuple_)
DictVSpace.register(dict_)
