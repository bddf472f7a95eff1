"""LU factors with row exchanges: `lu`, `lu_factor`, `lu_solve`.

The derivative is that of the factors for the same row exchanges. With X = L^-1 (P dA) U^-1, dL is L
times the part of X below the diagonal, and dU the rest of X times U.
"""

from typing import Any

import numpy as np
import scipy.linalg as linalg

from cytape.errors import SymbolicTensorError
from cytape.ops.adjoints.deferred_derivatives import composed
from cytape.ops.adjoints.identity_groups import together
from cytape.ops.calls.operands import is_tensor, joined, operand
from cytape.ops.engine import batch_axis
from cytape.ops.engine.op_kinds import general, nondifferentiable
from cytape.ops.indexing import take_along_axis
from cytape.ops.joining import concatenate
from cytape.ops.rearranging import tril, triu
from cytape.ops.scipy_linalg.linear_systems import any_tensor, as_floats, by_columns
from cytape.ops.scipy_linalg.triangular_systems import solve_triangular_op
from cytape.ops.shaping import ndim
from cytape.ops.special_kernels.small_matrices import lu_gradient
from cytape.ops.submodules.matrix_parts import (
    adjoint,
    dtype_of,
    matmul,
    rows,
    smaller,
    stacked_shape,
)
from cytape.ops.submodules.solving import BLOCK
from cytape.tensor import convert_to_tensor
from cytape.tensor.values.spec import symbolic_spec

__all__ = ["lu", "lu_factor", "lu_solve"]

_LOWER, _UPPER = ({"lower": lower, "unit_diagonal": lower} for lower in (True, False))


def _from_right(g, a, lower, unit_diagonal):
    """Return g a^-1 for a triangular matrix."""
    return adjoint(solve_triangular_op(
        adjoint(a), adjoint(g), lower=not lower, unit_diagonal=unit_diagonal))


def _exchanged(x, order):
    return take_along_axis(x, rows(order), -2)


def _order(pivots, *, n_rows, inverse=False):
    """Return the order of the rows that LAPACK's exchanges make, or its inverse."""
    n_rows = pivots.shape[-1] if n_rows is None else n_rows  # of a matrix of unknown extents
    order = np.empty((*pivots.shape[:-1], n_rows), np.int32)
    for i in np.ndindex(pivots.shape[:-1]):
        places = list(range(n_rows))
        for row, other in enumerate(pivots[i].tolist()):
            places[row], places[other] = places[other], places[row]
        order[i] = places
    return np.argsort(order, -1).astype(np.int32) if inverse else order


order_op = nondifferentiable(
    "ScipyLinalgRowOrder", _order,
    shape_rule=lambda pivots, n_rows, **_: symbolic_spec(
        (*pivots.shape[:-1], n_rows), np.int32),
    batch=lambda call: call.again(call.inputs))


def _sizes(op):
    m, n = op.input_specs[0].shape[-2:]
    return (m, n, None) if m is None or n is None else (m, n, min(m, n))


def _inner_gradient(square, g):
    """Return the gradient of the exchanged square, given that of its packed factors."""
    lower, upper = _unit_lower(square), triu(square)
    inner = tril(matmul(adjoint(lower), tril(g, -1)), -1) + triu(matmul(triu(g), adjoint(upper)))
    inner = solve_triangular_op(adjoint(square), inner, lower=False, unit_diagonal=True)
    return _from_right(inner, adjoint(square), True, False)


AT_ONCE = 160  # rows; larger matrices are faster by blocks


def _by_blocks(square, g):
    """Compute that gradient from the last block of columns to the first, mostly by products."""
    has_kernel = square.dtype == g.dtype and g.dtype.char in "fd"
    if has_kernel and (square.ndim > 2 or square.shape[-1] <= AT_ONCE):
        return lu_gradient(square, g)
    if square.ndim > 2 or square.shape[-1] <= BLOCK:
        return _inner_gradient(square, g)
    g = g.astype(np.result_type(square, g))
    for start in reversed(range(0, square.shape[0], BLOCK)):
        own, rest = slice(start, start + BLOCK), slice(start + BLOCK, None)
        below, right, block = square[rest, own], square[own, rest], square[own, own]
        g[rest, own] -= g[rest, rest] @ adjoint(right)
        g[own, rest] -= adjoint(below) @ g[rest, rest]
        g[rest, own] = _from_right(g[rest, own], adjoint(block), True, False)
        g[own, rest] = solve_triangular_op(
            adjoint(block), g[own, rest], lower=False, unit_diagonal=True)
        g[own, own] -= np.triu(adjoint(below) @ g[rest, own])
        g[own, own] -= np.tril(g[own, rest] @ adjoint(right), -1)
        g[own, own] = _by_blocks(block, g[own, own])
    return g


lu_back_op = composed(
    "ScipyLinalgLuBack", _by_blocks, _inner_gradient,
    shape_rule=lambda square, g: symbolic_spec(g.shape, np.result_type(square.dtype, g.dtype)),
    batch=batch_axis.of_one_shape)


def _lu_vjp(op, g, _):
    (packed, pivots), (m, n, k) = op.outputs, _sizes(op)
    if k is None:
        return NotImplemented
    square, corner = packed[..., :k, :k], g[..., :k, :k]
    below, right = None, None
    if m > k:
        below = _from_right(g[..., k:, :], adjoint(square), True, False)
        corner = corner - triu(matmul(adjoint(packed[..., k:, :]), below))
    if n > k:
        right = solve_triangular_op(
            adjoint(square), g[..., k:], lower=False, unit_diagonal=True)
        corner = corner - tril(matmul(right, adjoint(packed[..., k:])), -1)
    result = lu_back_op(square, corner)
    if below is not None:
        result = concatenate([result, below], -2)
    if right is not None:
        result = concatenate([result, right], -1)
    return _exchanged(result, order_op(pivots, n_rows=m, inverse=True))


def _unit_lower(x):
    return tril(x, -1) + np.eye(x.shape[-1], dtype=x.dtype)


def _lu_jvp(op, t):
    (packed, pivots), (m, n, k) = op.outputs, _sizes(op)
    if k is None:
        return NotImplemented
    t = _exchanged(t, order_op(pivots, n_rows=m))
    square = packed[..., :k, :k]
    inner = solve_triangular_op(square, t[..., :k, :k], **_LOWER)
    inner = _from_right(inner, square, **_UPPER)
    t_lower = matmul(_unit_lower(square), tril(inner, -1))
    t_upper = matmul(triu(inner), triu(square))
    result = t_lower + t_upper
    if m > k:
        below = t[..., k:, :] - matmul(packed[..., k:, :], t_upper)
        result = concatenate([result, _from_right(below, square, **_UPPER)], -2)
    if n > k:
        right = t[..., k:] - matmul(t_lower, packed[..., k:])
        result = concatenate([result, solve_triangular_op(square, right, **_LOWER)], -1)
    return result, None


def _packed(a, *, check_finite):
    packed, pivots = linalg.lu_factor(*as_floats(a), check_finite=check_finite)
    return packed.astype(dtype_of(a), copy=False), pivots


def _lu_spec(a, **_):
    *stack, m, n = stacked_shape(a, "lu_factor")
    return (symbolic_spec((*stack, m, n), dtype_of(a)),
            symbolic_spec((*stack, smaller(m, n)), np.int32))


lu_factor_op = general(
    "ScipyLinalgLuFactor", _packed, vjp=_lu_vjp, jvp=_lu_jvp,
    saved_outputs=(0, 1), optional_gradients=(1,), shape_rule=_lu_spec, batch=batch_axis.stacked)


def lu_factor(a, overwrite_a=False, check_finite=True) -> Any:
    """Return the packed LU factors of matrices for `lu_solve`, as `scipy.linalg.lu_factor`.

    Examples
    --------
    >>> import cytape
    >>> from cytape.scipy.linalg import lu_factor
    >>> a = np.array([[4.0, 3.0], [2.0, 3.0]])
    >>> cytape.grad(lambda a: lu_factor(a)[0][1, 1])(a)
    array([[ 0.375, -0.5  ],
           [-0.75 ,  1.   ]])
    """
    a = joined(a)
    if not is_tensor(a):
        return linalg.lu_factor(a, overwrite_a, check_finite)
    stacked_shape(a.spec, "lu_factor")  # raises
    return lu_factor_op(a, check_finite=bool(check_finite))


def lu_solve(lu_and_piv, b, trans=0, overwrite_b=False, check_finite=True) -> Any:
    """Solve equations, given the factors of `lu_factor`, as `scipy.linalg.lu_solve`.

    Examples
    --------
    >>> import cytape
    >>> from cytape.scipy.linalg import lu_factor, lu_solve
    >>> a = np.array([[4.0, 0.0], [0.0, 2.0]])
    >>> cytape.grad(lambda a: np.sum(lu_solve(lu_factor(a), np.ones(2))))(a) + 0.0
    array([[-0.0625, -0.125 ],
           [-0.125 , -0.25  ]])
    """
    packed, pivots = lu_and_piv
    packed, b = map(operand, (packed, b))
    if not any_tensor(packed, b, pivots):
        return linalg.lu_solve((packed, pivots), b, trans, overwrite_b, check_finite)
    if trans not in (0, 1, 2):
        raise ValueError(f"trans must be 0, 1 or 2, got {trans}")
    packed, b = together(packed, b)
    pivots = pivots if is_tensor(pivots) else np.asarray(pivots)
    n, height = packed.shape[-1], b.shape[max(ndim(b) - 2, 0)]
    if height is not None and n is not None and height != n:
        raise ValueError(f"Shapes of lu {packed.shape} and b {b.shape} are incompatible")
    order = order_op(pivots, n_rows=packed.shape[-1], inverse=trans != 0)

    def solve(packed, b):
        if trans == 0:
            half = solve_triangular_op(
                packed, _exchanged(b, order), **_LOWER, check_finite=bool(check_finite))
            return solve_triangular_op(packed, half, **_UPPER)
        turned = adjoint(packed) if trans == 2 else np.swapaxes(packed, -1, -2)
        half = solve_triangular_op(
            turned, b, lower=True, unit_diagonal=False, check_finite=bool(check_finite))
        return _exchanged(
            solve_triangular_op(turned, half, lower=False, unit_diagonal=True), order)

    return by_columns(solve, packed, b)


def lu(a, permute_l=False, overwrite_a=False, check_finite=True, p_indices=False) -> Any:
    """Return the LU factors of matrices, as `scipy.linalg.lu`; row exchanges have no derivative.

    Examples
    --------
    >>> import cytape
    >>> from cytape.scipy.linalg import lu
    >>> cytape.grad(lambda a: lu(a)[2][1, 1])(np.array([[4.0, 3.0], [2.0, 3.0]]))
    array([[ 0.375, -0.5  ],
           [-0.75 ,  1.   ]])
    """
    a = joined(a)
    if not is_tensor(a):
        return linalg.lu(a, permute_l, overwrite_a, check_finite, p_indices)
    packed, pivots = lu_factor_op(a, check_finite=bool(check_finite))
    m, n = packed.shape[-2:]
    if m is None or n is None:
        raise SymbolicTensorError(f"lu needs a matrix of known extents, got shape {packed.shape}")
    k = min(m, n)
    lower = tril(packed[..., :k], -1) + np.eye(m, k, dtype=packed.dtype)
    upper = triu(packed[..., :k, :])
    places = order_op(pivots, n_rows=m, inverse=True)
    if permute_l:
        return _exchanged(lower, places), upper
    if p_indices:
        return places, lower, upper
    identity = convert_to_tensor(np.eye(m, dtype=np.empty(0, packed.dtype).real.dtype))
    return identity[places], lower, upper
