"""QR factors, least squares, pseudoinverses, norms and determinants by SciPy's names."""

from typing import Any

import numpy as np
import scipy.linalg as linalg
from numpy.linalg import LinAlgError

from cytape.errors import NotDifferentiableError
from cytape.ops.calls.operands import is_tensor, joined, operand, values_of
from cytape.ops.engine.op_kinds import nondifferentiable
from cytape.ops.indexing import take_along_axis
from cytape.ops.joining import concatenate
from cytape.ops.scipy_linalg.linear_systems import any_tensor, checked
from cytape.ops.shaping import ndim, reshape
from cytape.ops.submodules.factorizations import qr as numpys_qr
from cytape.ops.submodules.least_squares import completed, has_full_rank, is_tiny
from cytape.ops.submodules.least_squares import lstsq as numpys_lstsq
from cytape.ops.submodules.least_squares import pinv as numpys_pinv
from cytape.ops.submodules.matrix_parts import columns, dtype_of, stacked_shape
from cytape.ops.submodules.norms import norm as numpys_norm
from cytape.ops.submodules.solving import determinant_ops
from cytape.ops.submodules.spectral import svd as numpys_svd
from cytape.tensor.values.spec import symbolic_spec

__all__ = ["det", "lstsq", "norm", "pinv", "pinvh", "qr"]

pivots_op = nondifferentiable(
    "ScipyLinalgQrPivots", lambda a: linalg.qr(a, mode="r", pivoting=True, check_finite=False)[1],
    shape_rule=lambda a: symbolic_spec(
        (*stacked_shape(a, "qr")[:-2], stacked_shape(a, "qr")[-1]), np.int32))


def qr(a, overwrite_a=False, lwork=None, mode="full", pivoting=False, check_finite=True) -> Any:
    """Return the QR factors of matrices, as `scipy.linalg.qr`; pivots have no derivative.

    Examples
    --------
    >>> import cytape
    >>> from cytape.scipy.linalg import qr
    >>> cytape.grad(lambda a: qr(a)[1][0, 0])(np.diag([-3.0, 1.0])) + 0.0
    array([[1., 0.],
           [0., 0.]])
    """
    a = joined(a)
    if not is_tensor(a):
        return linalg.qr(a, overwrite_a, lwork, mode, pivoting, check_finite)
    if mode not in ("full", "qr", "r", "economic", "raw"):
        raise ValueError(
            "Mode argument should be one of ['full', 'r', 'economic', 'raw']")
    if mode == "raw":
        raise NotDifferentiableError('qr of tensors has the modes "full", "r" and "economic"')
    checked(check_finite, a)
    pivots = [pivots_op(a)] if pivoting else []
    if pivoting:
        a = take_along_axis(a, columns(pivots[0]), -1)
    if mode != "r":
        q, r = numpys_qr(a, "reduced" if mode == "economic" else "complete")
        return q, r, *pivots
    m, n = stacked_shape(a, "qr")[-2:]
    if m is None or n is None:
        return numpys_qr(a, "complete")[1], *pivots
    r = numpys_qr(a, "r")
    if m > n:  # SciPy's has as many rows as the matrix
        r = concatenate([r, np.zeros((*a.shape[:-2], m - n, n), r.dtype)], -2)
    return r, *pivots


def lstsq(a, b, cond=None, overwrite_a=False, overwrite_b=False, check_finite=True,
          lapack_driver=None) -> Any:
    """Return a least-squares solution of linear equations, as `scipy.linalg.lstsq`.

    The derivative is that of matrices of the same rank.

    Examples
    --------
    >>> import cytape
    >>> from cytape.scipy.linalg import lstsq
    >>> a = np.array([[1.0], [1.0]])
    >>> cytape.grad(lambda b: lstsq(a, b)[0][0])(np.array([1.0, 3.0])).round(12)
    array([0.5, 0.5])
    """
    a, b = joined(a), joined(b)
    if not any_tensor(a, b):
        return linalg.lstsq(a, b, cond, overwrite_a, overwrite_b, check_finite, lapack_driver)
    if lapack_driver not in (None, "gelsd", "gelsy", "gelss"):
        raise ValueError(f'LAPACK driver "{lapack_driver}" is not found')
    checked(check_finite, a, b)
    if cond is None:
        cond = np.finfo(dtype_of(*map(operand, (a, b)))).eps
    x, squares, rank, s = numpys_lstsq(a, b, rcond=cond)
    if lapack_driver == "gelsy" and not is_tiny(cond) and not has_full_rank(a, rank):
        raise TypeError(
            f'lstsq of tensors takes lapack_driver="gelsy" with cond={cond} only if the rank is '
            'known and full: it cuts columns by QR, which has no derivative here. The default '
            'driver, "gelsd", cuts singular values')
    m, n = np.shape(a)
    # In a graph, which does not know the rank, a matrix of lower rank is an error when it runs.
    if ndim(b) == 1 and (squares.shape == (1,) or None not in (m, n) and squares.shape == (
            None,) and m > n):
        squares = reshape(squares, ())
    if lapack_driver == "gelsy":
        return x, np.zeros(0), rank, None
    return x, squares, rank, s


def _cutoff(name, a, atol, rtol):
    """Return the relative cutoff of singular values, None for SciPy's."""
    if (atol or 0.0) < 0 or (rtol or 0.0) < 0:
        raise ValueError("atol and rtol values must be positive.")
    if not atol:
        return rtol
    values = values_of(a)
    if values is None:
        raise ValueError(f"{name}: atol needs the values of a, which a graph does not have; give "
                         "rtol, a multiple of the largest singular value")
    largest = np.linalg.norm(values, 2)
    if rtol is None:
        rtol = max(values.shape) * np.finfo(dtype_of(values)).eps
    return rtol + (atol / largest if largest else 0)


def pinv(a, *, atol=None, rtol=None, return_rank=False, check_finite=True) -> Any:
    """Return the pseudoinverse of a matrix, as `scipy.linalg.pinv`.

    The derivative is that of matrices of the same rank.

    Examples
    --------
    >>> import cytape
    >>> from cytape.scipy.linalg import pinv
    >>> cytape.grad(lambda a: np.sum(pinv(a)))(np.array([[2.0], [0.0]]))
    array([[-0.25],
           [ 0.25]])
    """
    a = joined(a)
    if not is_tensor(a):
        return linalg.pinv(
            a, atol=atol, rtol=rtol, return_rank=return_rank, check_finite=check_finite)
    return _pinv("pinv", a, atol, rtol, return_rank, check_finite, hermitian=False)


def pinvh(a, atol=None, rtol=None, lower=True, return_rank=False, check_finite=True) -> Any:
    """Return the pseudoinverse of a Hermitian matrix, as `scipy.linalg.pinvh`.

    Examples
    --------
    >>> import cytape
    >>> from cytape.scipy.linalg import pinvh
    >>> cytape.grad(lambda a: pinvh(a)[0, 0])(np.diag([2.0, 1.0])) + 0.0
    array([[-0.25,  0.  ],
           [ 0.  ,  0.  ]])
    """
    a = joined(a)
    if not is_tensor(a):
        return linalg.pinvh(a, atol, rtol, lower, return_rank, check_finite)
    checked(check_finite, a)
    return _pinv("pinvh", completed(a, lower), atol, rtol, return_rank, False, hermitian=True)


def _pinv(name, a, atol, rtol, return_rank, check_finite, hermitian):
    checked(check_finite, a)
    cutoff = _cutoff(name, a, atol, rtol)
    result = numpys_pinv(a, hermitian=hermitian, rtol=cutoff)
    if not return_rank:
        return result
    s = numpys_svd(a, compute_uv=False)
    if cutoff is None:
        cutoff = max(a.shape) * np.finfo(s.dtype).eps
    return result, np.sum(s > cutoff * np.max(s, axis=-1, keepdims=True), axis=-1)


def norm(a, ord=None, axis=None, keepdims=False, check_finite=True) -> Any:  # noqa: A002
    """Return a norm of a matrix or vector, as `scipy.linalg.norm`.

    Examples
    --------
    >>> import cytape
    >>> from cytape.scipy.linalg import norm
    >>> cytape.grad(norm)(np.array([3.0, 4.0]))
    array([0.6, 0.8])
    """
    a = joined(a)
    if not is_tensor(a):
        return linalg.norm(a, ord, axis, keepdims, check_finite)
    checked(check_finite, a)
    return numpys_norm(a, ord, axis, keepdims)


def _inverse(a):
    """Invert matrices in three quarters of the operations of `numpy.linalg.inv`."""
    if a.ndim > 2:
        return np.linalg.inv(a)
    factor, invert = linalg.get_lapack_funcs(("getrf", "getri"), (a,))
    packed, pivots, _ = factor(a)
    inverse, failed = invert(packed, pivots, lwork=64 * len(a), overwrite_lu=True)
    if failed:
        raise LinAlgError("Singular matrix")
    return inverse.astype(dtype_of(a), copy=False)


det_op, cofactors_op = determinant_ops("ScipyLinalg", _inverse)


def det(a, overwrite_a=False, check_finite=True) -> Any:
    """Return the determinants of matrices, as `scipy.linalg.det`.

    Examples
    --------
    >>> import cytape
    >>> from cytape.scipy.linalg import det
    >>> cytape.grad(det)(np.array([[1.0, 2.0], [3.0, 4.0]])).round(12)
    array([[ 4., -3.],
           [-2.,  1.]])
    """
    a = joined(a)
    if not is_tensor(a):
        return linalg.det(a, overwrite_a, check_finite)
    checked(check_finite, a)
    return det_op(a)
