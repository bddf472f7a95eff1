"""Matrices that are made of vectors: Toeplitz, Hankel, companion and others; Toeplitz systems.

Element i, j of a Toeplitz matrix is c[i - j] on and below the diagonal, and r[j - i] above it.
"""

from typing import Any

import numpy as np
import scipy.linalg as linalg
from numpy.linalg import LinAlgError

from cytape.ops.adjoints.identity_groups import together
from cytape.ops.calls.operands import is_tensor, joined, values_of
from cytape.ops.choosing.padding import pad
from cytape.ops.elementwise import absolute, real, where
from cytape.ops.engine.op_kinds import general
from cytape.ops.indexing import take
from cytape.ops.joining import concatenate
from cytape.ops.matrix_products import conj_if_complex
from cytape.ops.rearranging import flip
from cytape.ops.reductions import sum
from cytape.ops.scipy_linalg.linear_systems import any_tensor, by_columns, checked
from cytape.ops.shaping import moveaxis, ndim, ravel, reshape
from cytape.ops.submodules.fourier import fft, ifft, irfft, rfft
from cytape.ops.submodules.matrix_parts import dtype_of, sum_of
from cytape.ops.submodules.stride_tricks import sliding_window_view
from cytape.tensor import convert_to_tensor
from cytape.tensor.values.spec import symbolic_spec

__all__ = [
    "block_diag", "circulant", "companion", "convolution_matrix", "diagsvd", "fiedler", "hankel",
    "khatri_rao", "leslie", "matmul_toeplitz", "solve_circulant", "solve_toeplitz", "toeplitz"]


def _vectors(*xs):
    """Return vectors, or stacks of them, as tensors."""
    xs = together(*[convert_to_tensor(joined(x)) for x in xs])
    return [reshape(x, (1,)) if ndim(x) == 0 else x for x in xs]


def _length(x):
    n = x.shape[-1]
    if n is None:
        raise ValueError(
            f"the length of a vector that makes a matrix must be known, got shape {x.shape}")
    return n


# -- of one or two vectors -------------------------------------------------------------------------


def toeplitz(c, r=None) -> Any:
    """Return a Toeplitz matrix, as `scipy.linalg.toeplitz`.

    Examples
    --------
    >>> import cytape
    >>> from cytape.scipy.linalg import toeplitz
    >>> cytape.grad(lambda c: np.sum(toeplitz(c)))(np.ones(3))
    array([3., 4., 2.])
    """
    if not any_tensor(c, r):
        return linalg.toeplitz(c, r)
    c, *r = _vectors(c) if r is None else _vectors(c, r)
    r = conj_if_complex(c) if not r else r[0]
    m, n = _length(c), _length(r)
    values = concatenate([flip(c, -1), r[..., 1:]], -1)
    if ndim(values) == 1 and m and n:
        return flip(sliding_window_view(values, n), 0)
    return take(values, m - 1 - np.arange(m)[:, None] + np.arange(n), -1)


def hankel(c, r=None) -> Any:
    """Return a Hankel matrix, as `scipy.linalg.hankel`.

    Examples
    --------
    >>> import cytape
    >>> from cytape.scipy.linalg import hankel
    >>> hankel(cytape.constant([1.0, 2.0]), [2.0, 3.0]).numpy()
    array([[1., 2.],
           [2., 3.]])
    """
    if not any_tensor(c, r):
        return linalg.hankel(c, r)
    c, *r = _vectors(c) if r is None else _vectors(c, r)
    c, r = ravel(c), ravel(r[0]) if r else ravel(0 * c)
    values = concatenate([c, r[1:]])
    return take(values, np.arange(_length(c))[:, None] + np.arange(_length(r)))


def circulant(c) -> Any:
    """Return a circulant matrix, as `scipy.linalg.circulant`.

    Examples
    --------
    >>> import cytape
    >>> from cytape.scipy.linalg import circulant
    >>> circulant(cytape.constant([1.0, 2.0])).numpy()
    array([[1., 2.],
           [2., 1.]])
    """
    if not is_tensor(c):
        return linalg.circulant(c)
    [c] = _vectors(c)
    n = _length(c)
    return take(c, (np.arange(n)[:, None] - np.arange(n)) % max(n, 1), -1)


def _below(first_row, below):
    """Return a square matrix of its first row and the elements below the diagonal."""
    n = _length(first_row)
    rest = below[..., None] * np.eye(n - 1, n, dtype=first_row.dtype)
    return concatenate([first_row[..., None, :], rest], -2)


def companion(a) -> Any:
    """Return the companion matrix of a polynomial, as `scipy.linalg.companion`.

    Examples
    --------
    >>> import cytape
    >>> from cytape.scipy.linalg import companion
    >>> companion(cytape.constant([2.0, 4.0, 6.0])).numpy()
    array([[-2., -3.],
           [ 1.,  0.]])
    """
    if not is_tensor(a):
        return linalg.companion(a)
    [a] = _vectors(a)
    if _length(a) < 2:
        raise ValueError("The length of `a` along the last axis must be at least 2.")
    values = values_of(a[..., 0])
    if values is not None and (values == 0).any():
        raise ValueError("The first coefficient(s) of `a` (i.e. elements of `a[..., 0]`) must not "
                         "be zero.")
    first = -a[..., 1:] / (1.0 * a[..., :1])
    return _below(first, 0 * first[..., 1:] + 1)


def leslie(f, s) -> Any:
    """Return a Leslie matrix, as `scipy.linalg.leslie`.

    Examples
    --------
    >>> import cytape
    >>> from cytape.scipy.linalg import leslie
    >>> leslie(cytape.constant([0.5, 2.0]), [0.25]).numpy()
    array([[0.5 , 2.  ],
           [0.25, 0.  ]])
    """
    if not any_tensor(f, s):
        return linalg.leslie(f, s)
    f, s = _vectors(f, s)
    if _length(f) != _length(s) + 1:
        raise ValueError("Incorrect lengths for f and s. The length of s along the last axis must "
                         "be one less than the length of f.")
    if _length(s) == 0:
        raise ValueError("The length of s must be at least 1.")
    return _below(f, s)


def fiedler(a) -> Any:
    """Return the Fiedler matrix, of absolute differences, as `scipy.linalg.fiedler`.

    Examples
    --------
    >>> import cytape
    >>> from cytape.scipy.linalg import fiedler
    >>> fiedler(cytape.constant([1.0, 4.0])).numpy()
    array([[0., 3.],
           [3., 0.]])
    """
    if not is_tensor(a):
        return linalg.fiedler(a)
    [a] = _vectors(a)
    return a if a.size == 0 else absolute(a[..., :, None] - a[..., None, :])


def convolution_matrix(a, n, mode="full") -> Any:
    """Return the matrix of a convolution, as `scipy.linalg.convolution_matrix`.

    Examples
    --------
    >>> import cytape
    >>> from cytape.scipy.linalg import convolution_matrix
    >>> convolution_matrix(cytape.constant([1.0, 2.0]), 2).numpy()
    array([[1., 0.],
           [2., 1.],
           [0., 2.]])
    """
    if not is_tensor(a):
        return linalg.convolution_matrix(a, n, mode)
    if n <= 0:
        raise ValueError("n must be a positive integer.")
    [a] = _vectors(a)
    length = _length(a)
    if length == 0:
        raise ValueError("len(a) must be at least 1.")
    if mode not in ("full", "valid", "same"):
        raise ValueError("'mode' argument must be one of ('full', 'valid', 'same')")
    cut = min(n, length) - 1
    start = {"full": 0, "same": cut // 2, "valid": cut}[mode]
    stop = {"full": 0, "same": cut - cut // 2, "valid": cut}[mode]
    rows = np.arange(start, length + n - 1 - stop)
    places = rows[:, None] - np.arange(n)
    padded = pad(a, [(0, 0)] * (ndim(a) - 1) + [(0, 1)])
    return take(padded, np.where((places < 0) | (places > length), length, places), -1)


def block_diag(*arrs) -> Any:
    """Return a matrix of blocks on its diagonal, as `scipy.linalg.block_diag`.

    Examples
    --------
    >>> import cytape
    >>> from cytape.scipy.linalg import block_diag
    >>> block_diag(cytape.constant([[1.0]]), [[2.0, 3.0]]).numpy()
    array([[1., 0., 0.],
           [0., 2., 3.]])
    """
    if not any_tensor(*arrs):
        return linalg.block_diag(*arrs)
    blocks = _vectors(*arrs)
    blocks = [reshape(x, (1, -1)) if ndim(x) == 1 else x for x in blocks]
    stack = np.broadcast_shapes(*[x.shape[:-2] for x in blocks])
    blocks = [np.broadcast_to(x, (*stack, *x.shape[-2:])) for x in blocks]
    dtype = np.result_type(*[x.dtype for x in blocks])
    width, before, rows = int(np.sum([x.shape[-1] for x in blocks])), 0, []
    for x in blocks:
        m, n = x.shape[-2:]
        rows.append(concatenate([
            np.zeros((*stack, m, before), dtype), x,
            np.zeros((*stack, m, width - before - n), dtype)], -1))
        before += n
    return concatenate(rows, -2)


def khatri_rao(a, b) -> Any:
    """Return the products of the columns of two matrices, as `scipy.linalg.khatri_rao`.

    Examples
    --------
    >>> import cytape
    >>> from cytape.scipy.linalg import khatri_rao
    >>> khatri_rao(cytape.constant([[1.0, 2.0]]), [[3.0, 4.0], [5.0, 6.0]]).numpy()
    array([[ 3.,  8.],
           [ 5., 12.]])
    """
    if not any_tensor(a, b):
        return linalg.khatri_rao(a, b)
    a, b = _vectors(a, b)
    if ndim(a) < 2 or ndim(b) < 2:
        raise ValueError("Both arrays should have at least two dimensions")
    if a.shape[-1] != b.shape[-1]:
        raise ValueError("The number of columns for both arrays should be equal.")
    c = a[..., :, None, :] * b[..., None, :, :]
    return reshape(c, (*c.shape[:-3], c.shape[-3] * c.shape[-2], c.shape[-1]))


def diagsvd(s, M, N) -> Any:  # noqa: N803 (SciPy's names)
    """Return the matrix of singular values, as `scipy.linalg.diagsvd`.

    Examples
    --------
    >>> import cytape
    >>> from cytape.scipy.linalg import diagsvd
    >>> diagsvd(cytape.constant([1.0, 2.0]), 2, 3).numpy()
    array([[1., 0., 0.],
           [0., 2., 0.]])
    """
    if not is_tensor(s):
        return linalg.diagsvd(s, M, N)
    [s] = _vectors(s)
    if _length(s) not in (M, N):
        raise ValueError("Length of s must be M or N.")
    square = s[..., :, None] * np.eye(_length(s), dtype=s.dtype)
    before = [(0, 0)] * (ndim(s) - 1)
    return pad(square, [*before, (0, M - _length(s)), (0, N - _length(s))])


# -- Toeplitz systems ------------------------------------------------------------------------------


def _transforms(*xs):
    """Return the Fourier transform for operands, and its inverse."""
    if any(x.dtype.kind == "c" for x in xs):
        return fft, ifft
    return rfft, irfft


def _product(c, r, x):
    """Return the product of a Toeplitz matrix and the columns of x, in O(n log n)."""
    m, n = c.shape[-1], r.shape[-1]
    transform, back = _transforms(c, r, x)
    whole = concatenate([c, flip(r[1:], 0)])
    spectrum = transform(whole, m + n - 1, 0)
    return back(spectrum[:, None] * transform(x, m + n - 1, 0), m + n - 1, 0)[:m]


def _diagonal_sums(u, v):
    """Return the sums of the diagonals of u v^H: those below the main one, and those above it."""
    n = u.shape[0]
    transform, back = _transforms(u, v)
    sums = back(sum(
        transform(u, 2 * n, 0) * conj_if_complex(transform(v, 2 * n, 0)), -1), 2 * n, 0)
    return sums[:n], concatenate([0 * sums[:1], flip(sums[n + 1:], 0)])


def _toeplitz_vjp(op, g):
    if not all(spec.known for spec in op.input_specs):
        return NotImplemented
    (c, r, _), x = op.inputs, op.outputs[0]
    first = concatenate([c[:1], r[1:]])  # SciPy does not read r[0]
    gb = toeplitz_op(conj_if_complex(first), conj_if_complex(c), g)
    below, above = _diagonal_sums(gb, x)
    return -below, -above, gb


def _toeplitz_jvp(op, tc, tr, tb):
    if not all(spec.known for spec in op.input_specs):
        return NotImplemented
    (c, r, _), x = op.inputs, op.outputs[0]
    change = None
    if tc is not None or tr is not None:
        tc = 0 * c if tc is None else tc
        tr = 0 * r if tr is None else tr
        change = -_product(tc, concatenate([tc[:1], tr[1:]]), x)
    return toeplitz_op(c, r, sum_of([tb, change]))


toeplitz_op = general(
    "ScipyLinalgSolveToeplitz",
    lambda c, r, b, check_finite=False: linalg.solve_toeplitz(
        (c, r), b, check_finite=check_finite).astype(dtype_of(c, r, b), copy=False),
    vjp=_toeplitz_vjp, jvp=_toeplitz_jvp, saved_outputs=(0,), optional_tangents=(0, 1, 2),
    shape_rule=lambda c, r, b, **_: symbolic_spec(b.shape, dtype_of(c, r, b)))


def _column_and_row(c_or_cr):
    if not isinstance(c_or_cr, tuple):
        c = convert_to_tensor(joined(c_or_cr))
        return c, conj_if_complex(c)
    return [convert_to_tensor(joined(x)) for x in c_or_cr]


def _columns_of(what, solve, c, r, b):
    if ndim(c) != 1 or ndim(r) != 1 or ndim(b) > 2:
        raise ValueError(
            f"{what} of tensors takes vectors c and r, and another operand of one or two axes, got "
            f"shapes {c.shape}, {r.shape} and {b.shape}")
    n = r.shape[0]
    if n is not None and b.shape is not None and b.shape[0] not in (None, n):
        raise ValueError("Incompatible dimensions")
    return by_columns(lambda c, b, r: solve(c, r, b), c, b, r)


def solve_toeplitz(c_or_cr, b, check_finite=True) -> Any:
    """Solve equations with a Toeplitz matrix, as `scipy.linalg.solve_toeplitz`.

    Examples
    --------
    >>> import cytape
    >>> from cytape.scipy.linalg import solve_toeplitz
    >>> c = np.array([2.0, 1.0])
    >>> cytape.grad(lambda c: np.sum(solve_toeplitz(c, np.ones(2))))(c).round(12)
    array([-0.22222222, -0.22222222])
    """
    if not any_tensor(b, *(c_or_cr if isinstance(c_or_cr, tuple) else (c_or_cr,))):
        return linalg.solve_toeplitz(c_or_cr, b, check_finite)
    c, r, b = together(*_column_and_row(c_or_cr), convert_to_tensor(joined(b)))
    if c.shape != r.shape:
        raise ValueError(f"c and r must have the same length, got shapes {c.shape} and {r.shape}")
    return _columns_of("solve_toeplitz", lambda c, r, b: toeplitz_op(
        c, r, b, check_finite=bool(check_finite)), c, r, b)


def matmul_toeplitz(c_or_cr, x, check_finite=False, workers=None) -> Any:
    """Multiply with a Toeplitz matrix by Fourier transforms, as `scipy.linalg.matmul_toeplitz`.

    Examples
    --------
    >>> import cytape
    >>> from cytape.scipy.linalg import matmul_toeplitz
    >>> c = np.array([2.0, 1.0])
    >>> cytape.grad(lambda c: np.sum(matmul_toeplitz(c, np.ones(2))))(c).round(12)
    array([2., 2.])
    """
    if not any_tensor(x, *(c_or_cr if isinstance(c_or_cr, tuple) else (c_or_cr,))):
        return linalg.matmul_toeplitz(c_or_cr, x, check_finite, workers)
    c, r, x = together(*_column_and_row(c_or_cr), convert_to_tensor(joined(x)))
    checked(check_finite, c, r, x)
    return _columns_of("matmul_toeplitz", _product, c, r, x)


def solve_circulant(c, b, singular="raise", tol=None, caxis=-1, baxis=0, outaxis=0) -> Any:
    """Solve equations with a circulant matrix, as `scipy.linalg.solve_circulant`.

    In graphs a singular matrix is not an error; its results are not finite, unless `singular` is
    "lstsq".

    Examples
    --------
    >>> import cytape
    >>> from cytape.scipy.linalg import solve_circulant
    >>> cytape.grad(lambda b: solve_circulant([2.0, 1.0], b)[0])(np.ones(2)).round(12)
    array([ 0.66666667, -0.33333333])
    """
    if not any_tensor(c, b):
        return linalg.solve_circulant(c, b, singular, tol, caxis, baxis, outaxis)
    c, b = _vectors(c, b)
    c, b = moveaxis(c, caxis, -1), moveaxis(b, baxis, -1)
    if c.shape[-1] != b.shape[-1]:
        raise ValueError(f"Shapes of c {c.shape} and b {b.shape} are incompatible")
    is_real = c.dtype.kind != "c" and b.dtype.kind != "c"
    spectrum, of_b = fft(c), fft(b)
    values = values_of(spectrum)
    size = absolute(spectrum if values is None else values)
    limit = np.max(size, -1, keepdims=True) * c.shape[-1] * np.finfo(float).eps if (
        tol is None) else tol
    near = size <= limit
    if singular != "raise":
        spectrum, of_b = where(near, 1, spectrum), where(near, 0, of_b)
    elif values is not None and near.any():
        raise LinAlgError("near singular circulant matrix.")
    x = ifft(of_b / spectrum)
    return moveaxis(real(x) if is_real else x, -1, outaxis)
