"""`SparseTensor`: a sparse matrix whose stored values are a tensor, and how to make one."""

import functools
import operator

import numpy as np
import scipy.sparse as sparse

from cytape.ops.adjoints.identity_groups import together
from cytape.ops.calls.operands import is_tensor, joined, operand
from cytape.ops.indexing import scatter_add
from cytape.ops.joining import concatenate
from cytape.ops.matrix_products import conj_if_complex
from cytape.ops.shaping import ndim, reshape, swapaxes
from cytape.ops.sparse_matrices.patterns import Pattern, pattern_of
from cytape.ops.sparse_matrices.sparse_products import product_op
from cytape.tensor import Tensor, convert_to_tensor, nest


class SparseTensor:
    """Sparse matrix whose stored values are a tensor; their positions are constant.

    It is made by `cytape.scipy.sparse.csr_array` and its like, and has the products, sums and
    methods below; `toarray` gives a dense tensor for all others.

    Attributes
    ----------
    data : Tensor or ndarray
        The values, by rows and within a row by columns.
    indices, indptr : numpy.ndarray
        Their positions, as those of `scipy.sparse.csr_array`.
    shape : tuple of int

    Examples
    --------
    >>> import cytape
    >>> from cytape.scipy import sparse
    >>> def f(values):
    ...     return np.sum(sparse.csr_array((values, [0, 1], [0, 1, 2])) @ np.array([3.0, 4.0]))
    >>> cytape.grad(f)(np.ones(2))
    array([3., 4.])
    """

    __array_ufunc__ = None  # operators of arrays and tensors leave the call to this class
    format, ndim = "csr", 2

    def __init__(self, data, pattern):
        self.data, self.pattern = data, pattern

    @property
    def shape(self):  # noqa: D102
        return self.pattern.shape

    @property
    def indices(self):  # noqa: D102
        return self.pattern.indices

    @property
    def indptr(self):  # noqa: D102
        return self.pattern.indptr

    @property
    def dtype(self):
        """The dtype of the values."""
        return self.data.dtype

    @property
    def nnz(self):
        """The number of stored values."""
        return self.pattern.size

    def __repr__(self):
        return (f"<SparseTensor of shape {self.shape} and dtype {self.dtype} with {self.nnz} "
                "stored values>")

    # ---- products

    def _times(self, x, transposed):
        x = joined(x)
        if isinstance(x, SparseTensor) or sparse.issparse(x):
            raise TypeError(
                "the product of a SparseTensor and a sparse matrix is not available: multiply "
                "with matrix.toarray(), or with a vector, A @ (B @ x)")
        x = operand(x)
        data, x = together(self.data, x)
        if ndim(x) not in (1, 2):
            raise ValueError(
                "could not interpret dimensions: the other operand of a sparse matrix must have 1 "
                f"or 2, got shape {x.shape}")
        return product_op(data, x, pattern=self.pattern, transposed=transposed)

    def __matmul__(self, x):
        return self._times(x, False)

    def __rmatmul__(self, x):
        x = operand(joined(x))
        if ndim(x) == 1:
            return self._times(x, True)
        return swapaxes(self._times(swapaxes(x, -1, -2), True), -1, -2)

    def dot(self, x):
        """Return the product with a vector or dense matrix."""
        return self @ x

    # ---- elementwise

    def _scaled(self, number, function):
        number = joined(number)
        if np.ndim(number) != 0 or isinstance(number, SparseTensor) or sparse.issparse(number):
            return NotImplemented
        return SparseTensor(function(self.data, number), self.pattern)

    def __mul__(self, number):
        return self._scaled(number, operator.mul)

    __rmul__ = __mul__

    def __truediv__(self, number):
        return self._scaled(number, operator.truediv)

    def __neg__(self):
        return SparseTensor(-self.data, self.pattern)

    def _plus(self, other, sign):
        other = sparse_tensor(other)
        if other is None:
            return NotImplemented
        if other.shape != self.shape:
            raise ValueError(f"inconsistent shapes: {self.shape} and {other.shape}")
        if other.pattern is self.pattern:
            return SparseTensor(self.data + sign * other.data, self.pattern)
        return from_elements(
            concatenate([self.data, sign * other.data]),
            np.concatenate([self.pattern.rows, other.pattern.rows]),
            np.concatenate([self.indices, other.indices]), self.shape)

    def __add__(self, other):
        return self._plus(other, 1)

    __radd__ = __add__

    def __sub__(self, other):
        return self._plus(other, -1)

    def __rsub__(self, other):
        return (-self)._plus(other, 1)

    # ---- other forms

    def transpose(self):
        """Return the transpose."""
        return from_elements(
            self.data, self.indices, self.pattern.rows, self.shape[::-1])

    T = property(transpose)

    def conj(self):
        """Return the matrix with conjugate values."""
        return SparseTensor(conj_if_complex(self.data), self.pattern)

    def toarray(self):
        """Return a dense tensor."""
        m, n = self.shape
        places = self.pattern.rows.astype(np.int64) * n + self.indices
        return reshape(scatter_add(convert_to_tensor(self.data), places, (m * n,)), (m, n))

    def diagonal(self, k=0):
        """Return the k-th diagonal."""
        m, n = self.shape
        rows = self.pattern.rows
        on = np.flatnonzero(rows + k == self.indices)
        return scatter_add(
            convert_to_tensor(self.data)[on], np.minimum(rows, self.indices)[on],
            (max(0, min(m + min(k, 0), n - max(k, 0))),))

    def sum(self, axis=None, dtype=None, out=None):
        """Return the sum of all elements, or of those along an axis."""
        if dtype is not None or out is not None:
            raise TypeError("the sum of a SparseTensor takes no dtype and no out")
        if axis is None:
            return np.sum(self.data)
        ones = np.ones(self.shape[axis], self.dtype)
        return ones @ self if axis in (0, -2) else self @ ones

    def copy(self):
        """Return a matrix of the same values, which are never changed in place."""
        return SparseTensor(self.data, self.pattern)

    def tocsr(self):
        """Return this matrix: all are in compressed rows."""
        return self

    tocsc = tocoo = tocsr

    def asformat(self, format, copy=False):  # noqa: A002
        """Return this matrix: all are in compressed rows."""
        return self

    def __array__(self, dtype=None, copy=None):
        raise TypeError("a SparseTensor does not convert to an array: call its method toarray()")

    def __getattr__(self, name):
        advice = ": call toarray(), whose result has all operations of tensors" if hasattr(
            sparse.csr_array, name) else ""
        raise AttributeError(f"a SparseTensor has no {name!r}{advice}")


def without_sparse_tensors(function):
    """Return a function of SciPy that refuses a SparseTensor."""
    @functools.wraps(function)
    def called(*args, **options):
        if any(isinstance(x, SparseTensor) for x in nest.flatten((args, options))):
            raise TypeError(
                f"{function.__name__} takes no SparseTensor: call its toarray(), or make the "
                "matrix of the values and all positions, csr_array((values, (rows, columns)))")
        return function(*args, **options)

    called.refuses_tensors = True  # not advised instead of SciPy's
    return called


def from_elements(data, rows, cols, shape):
    """Return the matrix of elements in any order; values at the same position are added."""
    if np.ndim(data) != 1 or np.shape(rows) != np.shape(cols) or (
            None not in np.shape(data) and np.shape(data) != np.shape(rows)):
        raise ValueError(
            "row, column, and data array must all be the same length, got shapes "
            f"{np.shape(rows)}, {np.shape(cols)} and {np.shape(data)}")
    pattern, summing = pattern_of(rows, cols, shape)
    if summing is not None:
        real = np.empty(0, data.dtype).real.dtype
        data = product_op(
            np.ones(summing.size, real), data, pattern=summing, transposed=False)
    return SparseTensor(data, pattern)


def from_compressed(data, indices, indptr, shape):
    """Return the matrix of compressed rows, which need not be sorted."""
    indices, indptr = np.asarray(indices), np.asarray(indptr)
    n_rows = indptr.size - 1
    if shape is None:
        shape = n_rows, int(indices.max(initial=-1)) + 1
    if n_rows != shape[0] or indptr[0] != 0 or (np.diff(indptr) < 0).any() or (
            indptr[-1] != indices.size):
        raise ValueError(
            f"index pointer must have {shape[0]} + 1 entries that increase from 0 to the number of "
            f"indices, {indices.size}")
    return from_elements(data, np.repeat(np.arange(n_rows), np.diff(indptr)), indices, shape)


def sparse_tensor(matrix):
    """Return a sparse matrix of any class as a SparseTensor; None for other objects."""
    if isinstance(matrix, SparseTensor):
        return matrix
    if not sparse.issparse(matrix):
        return None
    if matrix.ndim != 2:
        raise ValueError(f"a sparse array must have 2 axes to be combined with tensors, got shape "
                         f"{matrix.shape}")
    rows = sparse.csr_array(matrix)
    if not rows.has_canonical_format:
        rows = rows.copy()
        rows.sum_duplicates()
    return SparseTensor(rows.data, Pattern(rows.indices, rows.indptr, rows.shape))


def product(x, y):
    """Return ``x @ y``, one of which is a sparse matrix of SciPy and the other a tensor."""
    if isinstance(x, Tensor) or is_tensor(x):
        return x @ sparse_tensor(y)
    return sparse_tensor(x) @ y
