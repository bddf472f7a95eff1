"""Triangular matrices, and the Cholesky factor: `solve_triangular`, `cholesky`, `cho_solve`."""

from typing import Any

import numpy as np
import scipy.linalg as linalg

from cytape.ops.adjoints.conform import sum_to
from cytape.ops.adjoints.identity_groups import together
from cytape.ops.calls.operands import is_tensor, joined
from cytape.ops.engine import batch_axis
from cytape.ops.engine.op_kinds import general
from cytape.ops.rearranging import tril, triu
from cytape.ops.scipy_linalg.linear_systems import (
    any_tensor,
    as_floats,
    by_columns,
    in_stacks,
    solution_spec,
)
from cytape.ops.shaping import atleast_2d
from cytape.ops.submodules.factorizations import cholesky_jvp, cholesky_vjp
from cytape.ops.submodules.matrix_parts import (
    adjoint,
    dtype_of,
    matmul,
    square_shape,
    sum_of,
    transposed,
)
from cytape.tensor.values.spec import symbolic_spec

__all__ = ["cho_factor", "cho_solve", "cholesky", "solve_triangular"]


BLOCK = 64  # rows


# -- triangular matrices ---------------------------------------------------------------------------


def _triangle(x, lower, unit_diagonal, **_):
    return tril(x, -int(unit_diagonal)) if lower else triu(x, int(unit_diagonal))


def _triangle_of_product(columns, rows, lower, unit_diagonal):
    """Return a triangle of a product of matrices.

    If there is one column, this takes longer than the solution unless it is done in place.
    """
    # A multiplication takes half the time if there is one column.
    found = columns * rows if columns.shape[-1] == 1 else matmul(columns, rows)
    if type(found) is not np.ndarray:
        return _triangle(found, lower, unit_diagonal)
    beside = ~np.tri(BLOCK, k=-int(unit_diagonal), dtype=bool)
    n, found = found.shape[-1], found if lower else transposed(found)
    for i in range(0, n, BLOCK):
        found[..., i:i + BLOCK, i + BLOCK:] = 0
        size = min(BLOCK, n - i)
        np.copyto(found[..., i:i + size, i:i + size], 0, where=beside[:size, :size])
    return found if lower else transposed(found)


def _triangular_vjp(op, g):
    a, x = op.inputs[0], op.outputs[0]
    unit, lower = op.attrs["unit_diagonal"], op.attrs["lower"]
    gb = solve_triangular_op(adjoint(a), g, lower=not lower, unit_diagonal=unit)
    needs_a, needs_b = op.needs
    return (
        sum_to(_triangle_of_product(-gb, adjoint(x), lower, unit), op.input_specs[0])
        if needs_a else None, sum_to(gb, op.input_specs[1]) if needs_b else None)


def _triangular_jvp(op, ta, tb):
    attrs = {**op.attrs, "check_finite": False}
    changes = [tb, None if ta is None else -matmul(_triangle(ta, **attrs), op.outputs[0])]
    return solve_triangular_op(op.inputs[0], sum_of(changes), **attrs)


solve_triangular_op = general(
    "ScipyLinalgSolveTriangular",
    lambda a, b, lower, unit_diagonal, check_finite=False: linalg.solve_triangular(
        *as_floats(a, b), lower=lower, unit_diagonal=unit_diagonal, check_finite=check_finite),
    vjp=_triangular_vjp, jvp=_triangular_jvp, batched=in_stacks(_triangular_jvp),
    saved_inputs=(0,), saved_outputs=(0,), optional_tangents=(0, 1),
    shape_rule=solution_spec("solve_triangular"), batch=batch_axis.aligned)


def solve_triangular(
        a, b, trans=0, lower=False, unit_diagonal=False, overwrite_b=False,
        check_finite=True) -> Any:
    """Solve equations with a triangular matrix, as `scipy.linalg.solve_triangular`.

    Examples
    --------
    >>> import cytape
    >>> from cytape.scipy.linalg import solve_triangular
    >>> cytape.grad(lambda b: np.sum(solve_triangular(2 * np.eye(2), b)))(np.ones(2))
    array([0.5, 0.5])
    """
    a, b = joined(a), joined(b)
    if not any_tensor(a, b):
        return linalg.solve_triangular(
            a, b, trans, lower, unit_diagonal, overwrite_b, check_finite)
    if trans not in (0, 1, 2, "N", "T", "C"):
        raise KeyError(trans)
    a, b = together(a, b)
    if trans not in (0, "N"):
        a, lower = transposed(a) if trans in (1, "T") else adjoint(a), not lower
    return by_columns(lambda a, b: solve_triangular_op(
        a, b, lower=bool(lower), unit_diagonal=bool(unit_diagonal),
        check_finite=bool(check_finite)), a, b)


# -- Cholesky --------------------------------------------------------------------------------------

cholesky_op = general(
    "ScipyLinalgCholesky",
    forward=lambda a, *, upper, check_finite: linalg.cholesky(
        *as_floats(a), lower=not upper, check_finite=check_finite),
    vjp=cholesky_vjp, jvp=cholesky_jvp, batched=cholesky_jvp,
    saved_inputs=(), saved_outputs=(0,),
    shape_rule=lambda a, **_: symbolic_spec(square_shape(a, "cholesky"), dtype_of(a)),
    batch=batch_axis.stacked)


def cholesky(a, lower=False, overwrite_a=False, check_finite=True) -> Any:
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
    return cholesky_op(atleast_2d(a), upper=not lower, check_finite=bool(check_finite))


def cho_factor(a, lower=False, overwrite_a=False, check_finite=True) -> Any:
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
    return cholesky(a, lower, check_finite=check_finite), lower


def cho_solve(c_and_lower, b, overwrite_b=False, check_finite=True) -> Any:
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
    if not any_tensor(c, b):
        return linalg.cho_solve((c, lower), b, overwrite_b, check_finite)
    c, b = together(c, b)
    lower, is_mixed = np.all(lower), np.any(lower) and not np.all(lower)
    if is_mixed:  # SciPy's factors of a batch have one entry each
        raise ValueError("cho_solve of tensors takes lower factors or upper ones, not both")
    first, second = ("N", "C") if lower else ("C", "N")
    half = solve_triangular(c, b, first, lower, check_finite=check_finite)
    return solve_triangular(c, half, second, lower, check_finite=False)
