"""Functions of `scipy.linalg`: matrix equations, and functions of matrices.

Each backward pass solves the adjoint equation by SciPy's solver of the same name. Only the triangle
or band that SciPy reads has a gradient.
"""

import numpy as np
import scipy.linalg as linalg

from cytape.ops.adjoints.identity_groups import together
from cytape.ops.calls.operands import is_tensor, joined
from cytape.ops.engine import batch_axis
from cytape.ops.engine.op_kinds import general
from cytape.ops.joining import concatenate, stack
from cytape.ops.matrix_products import conj_if_complex
from cytape.ops.rearranging import tril, triu
from cytape.ops.reductions import sum
from cytape.ops.shaping import expand_dims, extents, ndim, squeeze
from cytape.ops.submodules.factorizations import cholesky as numpys_cholesky
from cytape.ops.submodules.matrix_parts import (
    adjoint,
    dtype_of,
    matmul,
    square_shape,
    sum_of,
    transposed,
)
from cytape.tensor.values.spec import symbolic_spec

__all__ = [
    "cho_factor", "cho_solve", "cholesky", "expm", "solve_banded", "solve_sylvester",
    "solve_triangular", "sqrtm"]


def _sides(solve, a, b):
    """Solve for a vector as for a matrix of one column."""
    if ndim(b) != 1:
        return solve(a, b)
    return squeeze(solve(a, expand_dims(b, 1)), 1)


# -- triangular matrices ---------------------------------------------------------------------------


def _triangle(x, lower, unit_diagonal):
    return tril(x, -int(unit_diagonal)) if lower else triu(x, int(unit_diagonal))


def _triangular_vjp(op, g):
    a, x, lower = op.inputs[0], op.outputs[0], op.attrs["lower"]
    unit = op.attrs["unit_diagonal"]
    gb = solve_triangular_op(adjoint(a), g, lower=not lower, unit_diagonal=unit)
    return _triangle(-matmul(gb, adjoint(x)), lower, unit) if op.needs[0] else None, gb


def _triangular_jvp(op, ta, tb):
    changes = [tb, None if ta is None else -matmul(_triangle(ta, **op.attrs), op.outputs[0])]
    return solve_triangular_op(op.inputs[0], sum_of(changes), **op.attrs)


solve_triangular_op = general(
    "ScipyLinalgSolveTriangular",
    lambda a, b, lower, unit_diagonal: linalg.solve_triangular(
        a, b, lower=lower, unit_diagonal=unit_diagonal),
    vjp=_triangular_vjp, jvp=_triangular_jvp, saved_inputs=(0,), saved_outputs=(0,),
    optional_tangents=(0, 1))


def solve_triangular(
        a, b, trans=0, lower=False, unit_diagonal=False, overwrite_b=False, check_finite=True):
    """Solve equations with a triangular matrix, as `scipy.linalg.solve_triangular`.

    Examples
    --------
    >>> import cytape
    >>> from cytape.scipy.linalg import solve_triangular
    >>> cytape.grad(lambda b: np.sum(solve_triangular(2 * np.eye(2), b)))(np.ones(2))
    array([0.5, 0.5])
    """
    a, b = joined(a), joined(b)
    if not is_tensor(a) and not is_tensor(b):
        return linalg.solve_triangular(
            a, b, trans, lower, unit_diagonal, overwrite_b, check_finite)
    if trans not in (0, 1, 2, "N", "T", "C"):
        raise KeyError(trans)
    a, b = together(a, b)
    if trans not in (0, "N"):
        a, lower = transposed(a) if trans in (1, "T") else adjoint(a), not lower
    return _sides(lambda a, b: solve_triangular_op(
        a, b, lower=bool(lower), unit_diagonal=bool(unit_diagonal)), a, b)


def cholesky(a, lower=False, overwrite_a=False, check_finite=True):
    """Return the Cholesky factor of a matrix, as `scipy.linalg.cholesky`.

    Examples
    --------
    >>> import cytape
    >>> from cytape.scipy.linalg import cholesky
    >>> cytape.grad(lambda a: cholesky(a)[0, 0])(np.diag([4.0, 9.0]))
    array([[0.25, 0.  ],
           [0.  , 0.  ]])
    """
    a = joined(a)
    if not is_tensor(a):
        return linalg.cholesky(a, lower, overwrite_a, check_finite)
    return numpys_cholesky(a, upper=not lower)


def cho_factor(a, lower=False, overwrite_a=False, check_finite=True):
    """Return the Cholesky factor for `cho_solve`, with zeros beside it, and `lower`.

    Examples
    --------
    >>> import cytape
    >>> from cytape.scipy.linalg import cho_factor, cho_solve
    >>> cytape.grad(lambda a: cho_solve(cho_factor(a), np.ones(1))[0])(np.array([[2.0]]))
    array([[-0.25]])
    """
    a = joined(a)
    if not is_tensor(a):
        return linalg.cho_factor(a, lower, overwrite_a, check_finite)
    return cholesky(a, lower), lower


def cho_solve(c_and_lower, b, overwrite_b=False, check_finite=True):
    """Solve equations, given a Cholesky factor, as `scipy.linalg.cho_solve`.

    Examples
    --------
    >>> import cytape
    >>> from cytape.scipy.linalg import cho_solve
    >>> cho_solve((np.array([[2.0]]), True), cytape.constant([8.0])).numpy()
    array([2.])
    """
    c, lower = c_and_lower
    c, b = joined(c), joined(b)
    if not is_tensor(c) and not is_tensor(b):
        return linalg.cho_solve((c, lower), b, overwrite_b, check_finite)
    c, b = together(c, b)
    first, second = ("N", "C") if lower else ("C", "N")
    return solve_triangular(c, solve_triangular(c, b, first, lower), second, lower)


# -- banded matrices -------------------------------------------------------------------------------
#
# Element i, j of the matrix is element u + i - j, j of the band.


def _shifted(rows, before, after):
    """Return row k of a band moved by k - before, filled with zeros at the ends."""
    zeros, width = np.zeros_like(rows), before + after
    padded = concatenate([zeros[..., :before], rows, zeros[..., :after]], -1)
    return stack([padded[..., k, k:k - width or None] for k in range(width + 1)], -2)


def _adjoint_band(band, lower, upper):
    return conj_if_complex(_shifted(band[::-1], lower, upper))


def _times_band(band, x, lower, upper):
    """Multiply a matrix, given by its band, with the columns of x."""
    return sum(_shifted((band * transposed(x)[:, None, :])[:, ::-1], lower, upper), 1).T


def _banded_vjp(op, g):
    lower, upper = op.attrs["lower"], op.attrs["upper"]
    band, x = op.inputs[0], op.outputs[0]
    gb = solve_banded_op(_adjoint_band(band, lower, upper), g, lower=upper, upper=lower)
    if not op.needs[0]:
        return None, gb
    repeated = stack([transposed(gb)] * (lower + upper + 1), 1)
    shifted = _shifted(repeated, upper, lower)
    return -sum(shifted * adjoint(x)[:, None, :], 0), gb


def _banded_jvp(op, t_band, tb):
    change = None if t_band is None else -_times_band(t_band, op.outputs[0], **op.attrs)
    return solve_banded_op(op.inputs[0], sum_of([tb, change]), **op.attrs)


solve_banded_op = general(
    "ScipyLinalgSolveBanded",
    lambda band, b, lower, upper: linalg.solve_banded((lower, upper), band, b),
    vjp=_banded_vjp, jvp=_banded_jvp, saved_inputs=(0,), saved_outputs=(0,),
    optional_tangents=(0, 1),
    shape_rule=lambda band, b, **_: symbolic_spec(b.shape, dtype_of(band, b)))


def solve_banded(l_and_u, ab, b, overwrite_ab=False, overwrite_b=False, check_finite=True):
    """Solve equations with a banded matrix, as `scipy.linalg.solve_banded`.

    Examples
    --------
    >>> import cytape
    >>> from cytape.scipy.linalg import solve_banded
    >>> band = np.array([[0.0, 1.0], [2.0, 2.0]])
    >>> cytape.grad(lambda b: solve_banded((0, 1), band, b)[0])(np.ones(2))
    array([ 0.5 , -0.25])
    """
    ab, b = joined(ab), joined(b)
    if not is_tensor(ab) and not is_tensor(b):
        return linalg.solve_banded(l_and_u, ab, b, overwrite_ab, overwrite_b, check_finite)
    lower, upper = map(int, l_and_u)
    return _sides(
        lambda ab, b: solve_banded_op(ab, b, lower=lower, upper=upper), *together(ab, b))


# -- functions of matrices -------------------------------------------------------------------------


def _sylvester_vjp(op, g):
    a, b = op.inputs[:2]
    x = op.outputs[0]
    gq = solve_sylvester_op(adjoint(a), adjoint(b), g)
    return -matmul(gq, adjoint(x)), -matmul(adjoint(x), gq), gq


def _sylvester_jvp(op, ta, tb, tq):
    x = op.outputs[0]
    change = sum_of([
        tq, None if ta is None else -matmul(ta, x), None if tb is None else -matmul(x, tb)])
    return solve_sylvester_op(*op.inputs[:2], change)


def _solve_sylvester(*matrices):
    """Call SciPy's function, which computes with booleans in single precision."""
    floats = [x if x.dtype.kind in "fc" else x.astype(float) for x in matrices]
    return linalg.solve_sylvester(*floats).astype(dtype_of(*matrices), copy=False)


solve_sylvester_op = general(
    "ScipyLinalgSolveSylvester", _solve_sylvester,
    vjp=_sylvester_vjp, jvp=_sylvester_jvp, saved_inputs=(0, 1), saved_outputs=(0,),
    optional_tangents=(0, 1, 2),
    shape_rule=lambda a, b, q: symbolic_spec(q.shape, dtype_of(a, b, q)))


def solve_sylvester(a, b, q):
    """Solve ``a x + x b = q``, as `scipy.linalg.solve_sylvester`.

    Examples
    --------
    >>> import cytape
    >>> from cytape.scipy.linalg import solve_sylvester
    >>> cytape.grad(lambda a: solve_sylvester(a, np.eye(1), np.eye(1))[0, 0])(np.eye(1))
    array([[-0.25]])
    """
    a, b, q = map(joined, (a, b, q))
    if not any(map(is_tensor, (a, b, q))):
        return linalg.solve_sylvester(a, b, q)
    return solve_sylvester_op(*together(a, b, q))


def _square_spec(a):
    return symbolic_spec(square_shape(a, "function of a matrix"), dtype_of(a))


def _root_vjp(op, g):
    root = adjoint(op.outputs[0])
    return solve_sylvester_op(root, root, g)


sqrtm_op = general(
    "ScipyLinalgSqrtm", lambda a: linalg.sqrtm(a),
    vjp=_root_vjp, jvp=lambda op, t: solve_sylvester_op(op.outputs[0], op.outputs[0], t),
    saved_inputs=(), saved_outputs=(0,), shape_rule=_square_spec)


def sqrtm(A, **options):  # noqa: N803 (SciPy's name)
    """Return the square root of a matrix, as `scipy.linalg.sqrtm`.

    Examples
    --------
    >>> import cytape
    >>> from cytape.scipy.linalg import sqrtm
    >>> cytape.grad(lambda a: sqrtm(a)[0, 0])(np.array([[4.0]]))
    array([[0.25]])
    """
    A = joined(A)
    return sqrtm_op(A) if is_tensor(A) else linalg.sqrtm(A, **options)


def _exponential_tangent(a, t):
    """Return the derivative of the exponential at `a` in a direction, from that of a block matrix.

    Higham, "Functions of Matrices" (2008), (10.43).
    """
    n = extents(a)[-1]
    block = concatenate([
        concatenate([a, t], -1), concatenate([np.zeros_like(a), a], -1)], -2)
    return expm_op(block)[..., :n, n:]


expm_op = general(
    "ScipyLinalgExpm", lambda a: linalg.expm(a),
    vjp=lambda op, g: _exponential_tangent(adjoint(op.inputs[0]), g),
    jvp=lambda op, t: _exponential_tangent(op.inputs[0], t), shape_rule=_square_spec,
    batch=batch_axis.stacked)


def expm(A):  # noqa: N803 (SciPy's name)
    """Return the exponential of a matrix, as `scipy.linalg.expm`.

    Examples
    --------
    >>> import cytape
    >>> from cytape.scipy.linalg import expm
    >>> cytape.grad(lambda a: expm(a)[0, 0])(np.array([[0.0]]))
    array([[1.]])
    """
    A = joined(A)
    return expm_op(A) if is_tensor(A) else linalg.expm(A)
