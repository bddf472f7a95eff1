"""Vector spaces of arrays, and of the named tuples that `numpy.linalg` returns."""

import math

import numpy as np
from numpy.linalg import _linalg

import cytape.numpy as functions
from cytape.autodiff.custom.boxes import ARRAY_TYPES
from cytape.autograd.builtins import NamedTupleVSpace
from cytape.autograd.core import VSpace
from cytape.tensor.tensor import Tensor

__all__ = ["ArrayVSpace", "ComplexArrayVSpace"]


class ArrayVSpace(VSpace):
    """Real arrays of one shape and dtype.

    Examples
    --------
    >>> space = ArrayVSpace(np.ones((2, 2)))
    >>> space.size, len(list(space.standard_basis())), float(space.inner_prod(*2 * [space.ones()]))
    (4, 4, 4.0)
    """

    units: tuple = (1,)

    def __init__(self, value):
        array = value if isinstance(value, Tensor) else np.asarray(value)
        self.shape, self.dtype = array.shape, array.dtype

    @property
    def size(self):
        """The dimension of the space."""
        return math.prod(self.shape) * len(self.units)

    @property
    def ndim(self):
        """The number of axes of the arrays."""
        return len(self.shape)

    def zeros(self):
        """Return an array of zeros."""
        return np.zeros(self.shape, self.dtype)

    def ones(self):
        """Return the sum of the standard basis."""
        return np.full(self.shape, sum(self.units), self.dtype)

    def standard_basis(self):
        """Yield the arrays that are zero but for one element."""
        for index in np.ndindex(*self.shape):
            for unit in self.units:
                vector = self.zeros()
                vector[index] = unit
                yield vector

    def randn(self):
        """Return an array of standard normal numbers."""
        parts = [np.asarray(unit * np.random.randn(*self.shape)) for unit in self.units]
        return sum(parts).astype(self.dtype)

    def _inner_prod(self, x, y):
        return functions.dot(functions.ravel(x), functions.ravel(y))


class ComplexArrayVSpace(ArrayVSpace):
    """Complex arrays of one shape and dtype, as a real vector space.

    Examples
    --------
    >>> space = ComplexArrayVSpace(1j)
    >>> space.size, [complex(x) for x in space.standard_basis()]
    (2, [(1+0j), 1j])
    """

    iscomplex = True
    units = (1, 1j)

    def _inner_prod(self, x, y):
        return functions.real(functions.vdot(x, y))

    def _covector(self, x):
        return functions.conj(x)


def _space_of(value):
    dtype = value.dtype if isinstance(value, Tensor) else np.asarray(value).dtype
    return (ComplexArrayVSpace if dtype.kind == "c" else ArrayVSpace)(value)


for _type in ARRAY_TYPES:
    VSpace.register(_type, _space_of)
for _result in (_linalg.EigResult, _linalg.EighResult, _linalg.QRResult, _linalg.SlogdetResult,
                _linalg.SVDResult):
    NamedTupleVSpace.register(_result)
