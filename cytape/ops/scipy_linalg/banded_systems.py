"""Equations with banded matrices: `solve_banded`, `solveh_banded`.

Element i, j of the matrix is element u + i - j, j of the band, u being the number of diagonals
above the main one. Elements of the band that lie outside of the matrix have the gradient 0.
"""

from typing import Any

import numpy as np
import scipy.linalg as linalg
from numpy.linalg import LinAlgError

from cytape.ops import reductions
from cytape.ops.adjoints.conform import sum_to
from cytape.ops.adjoints.identity_groups import together
from cytape.ops.calls.operands import joined
from cytape.ops.elementwise import real
from cytape.ops.engine import batch_axis
from cytape.ops.engine.op_kinds import general
from cytape.ops.joining import concatenate, stack
from cytape.ops.matrix_products import conj_if_complex
from cytape.ops.scipy_linalg.linear_systems import any_tensor, as_floats, by_columns, in_stacks
from cytape.ops.shapes import shape_rules
from cytape.ops.submodules.matrix_parts import adjoint, dtype_of, stacked_shape, sum_of, transposed
from cytape.tensor.values.spec import symbolic_spec

__all__ = ["solve_banded", "solveh_banded"]


def _shifted(rows, before, after):
    """Return row k of a band moved by k - before, filled with zeros at the ends."""
    zeros, width = np.zeros_like(rows), before + after
    padded = concatenate([zeros[..., :before], rows, zeros[..., :after]], -1)
    return stack([padded[..., k, k:k - width or None] for k in range(width + 1)], -2)


def _solution_spec(band, b, **_):
    *stack_, _, side = stacked_shape(band, "solve_banded")
    *other, height, width = stacked_shape(b, "solve_banded")
    if shape_rules.differ(side, height):
        raise LinAlgError("shapes of ab and b are not compatible.")
    shape = shape_rules.broadcast((*stack_,), (*other,), what="solve_banded")
    return symbolic_spec((*shape, height if side is None else side, width), dtype_of(band, b))


# -- general matrices ------------------------------------------------------------------------------


def _adjoint_band(band, lower, upper):
    return conj_if_complex(_shifted(band[..., ::-1, :], lower, upper))


def _times_band(band, x, lower, upper):
    """Multiply a matrix, given by its band, with the columns of x."""
    terms = band[..., None, :, :] * transposed(x)[..., None, :]
    return transposed(reductions.sum(_shifted(terms[..., ::-1, :], lower, upper), -2))


def _outer_band(gb, x, lower, upper):
    """Return the band of the products of the rows of gb and the conjugate ones of x, summed."""
    repeated = stack([transposed(gb)] * (lower + upper + 1), -2)
    return reductions.sum(_shifted(repeated, upper, lower) * adjoint(x)[..., None, :], -3)


def _banded_vjp(op, g):
    lower, upper = op.attrs["lower"], op.attrs["upper"]
    gb = solve_banded_op(
        _adjoint_band(op.inputs[0], lower, upper), g, lower=upper, upper=lower)
    needs_band, needs_b = op.needs
    return (
        sum_to(-_outer_band(gb, op.outputs[0], lower, upper), op.input_specs[0])
        if needs_band else None, sum_to(gb, op.input_specs[1]) if needs_b else None)


def _banded_jvp(op, t_band, tb):
    widths = op.attrs["lower"], op.attrs["upper"]
    change = None if t_band is None else -_times_band(t_band, op.outputs[0], *widths)
    return solve_banded_op(
        op.inputs[0], sum_of([tb, change]), lower=widths[0], upper=widths[1])


solve_banded_op = general(
    "ScipyLinalgSolveBanded",
    lambda band, b, lower, upper, check_finite=False: linalg.solve_banded(
        (lower, upper), *as_floats(band, b), check_finite=check_finite),
    vjp=_banded_vjp, jvp=_banded_jvp, batched=in_stacks(_banded_jvp), saved_inputs=(0,),
    saved_outputs=(0,), optional_tangents=(0, 1), shape_rule=_solution_spec,
    batch=batch_axis.aligned)


def solve_banded(l_and_u, ab, b, overwrite_ab=False, overwrite_b=False, check_finite=True) -> Any:
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
    if not any_tensor(ab, b):
        return linalg.solve_banded(l_and_u, ab, b, overwrite_ab, overwrite_b, check_finite)
    lower, upper = map(int, l_and_u)
    return by_columns(
        lambda ab, b: solve_banded_op(
            ab, b, lower=lower, upper=upper, check_finite=bool(check_finite)),
        *together(ab, b))


# -- positive definite matrices --------------------------------------------------------------------
#
# Both triangles have the elements of the one that is given, conjugated.


def _whole_band(band, lower):
    """Return the band of a Hermitian matrix that is given by one of its triangles."""
    width = band.shape[-2] - 1
    if lower:
        above = conj_if_complex(_shifted(band[..., ::-1, :], width, 0))[..., :-1, :]
        return concatenate([above, band], -2)
    below = conj_if_complex(_shifted(band[..., ::-1, :], 0, width))[..., 1:, :]
    return concatenate([band, below], -2)


def _hermitian_vjp(op, g):
    band, x, lower = op.inputs[0], op.outputs[0], op.attrs["lower"]
    gb = solveh_banded_op(band, g, lower=lower)
    width = op.input_specs[0].shape[-2]
    if width is None:
        return NotImplemented
    needs_band, needs_b = op.needs
    of_band = None
    if needs_band:
        widths = (width - 1, 0) if lower else (0, width - 1)
        of_band = -(_outer_band(gb, x, *widths) + _outer_band(x, gb, *widths))
        main = real(of_band[..., :1, :] if lower else of_band[..., -1:, :]) / 2
        parts = [main, of_band[..., 1:, :]] if lower else [of_band[..., :-1, :], main]
        of_band = sum_to(concatenate(parts, -2), op.input_specs[0])
    return of_band, sum_to(gb, op.input_specs[1]) if needs_b else None


def _hermitian_jvp(op, t_band, tb):
    lower, width = op.attrs["lower"], op.input_specs[0].shape[-2]
    if width is None:
        return NotImplemented
    change = None
    if t_band is not None:
        if t_band.dtype.kind == "c":  # LAPACK reads the real part of the main diagonal
            main = real(t_band[..., :1, :] if lower else t_band[..., -1:, :])
            parts = [main, t_band[..., 1:, :]] if lower else [t_band[..., :-1, :], main]
            t_band = concatenate(parts, -2)
        change = -_times_band(_whole_band(t_band, lower), op.outputs[0], width - 1, width - 1)
    return solveh_banded_op(op.inputs[0], sum_of([tb, change]), lower=lower)


solveh_banded_op = general(
    "ScipyLinalgSolvehBanded",
    lambda band, b, lower, check_finite=False: linalg.solveh_banded(
        *as_floats(band, b), lower=lower, check_finite=check_finite),
    vjp=_hermitian_vjp, jvp=_hermitian_jvp, batched=in_stacks(_hermitian_jvp),
    saved_outputs=(0,), optional_tangents=(0, 1), shape_rule=_solution_spec,
    batch=batch_axis.aligned)


def solveh_banded(
        ab, b, overwrite_ab=False, overwrite_b=False, lower=False, check_finite=True) -> Any:
    """Solve equations with a positive definite banded matrix, as `scipy.linalg.solveh_banded`.

    Examples
    --------
    >>> import cytape
    >>> from cytape.scipy.linalg import solveh_banded
    >>> band = np.array([[0.0, 1.0], [2.0, 2.0]])
    >>> cytape.grad(lambda b: solveh_banded(band, b)[0])(np.ones(2)).round(12)
    array([ 0.66666667, -0.33333333])
    """
    ab, b = joined(ab), joined(b)
    if not any_tensor(ab, b):
        return linalg.solveh_banded(ab, b, overwrite_ab, overwrite_b, lower, check_finite)
    return by_columns(
        lambda ab, b: solveh_banded_op(ab, b, lower=bool(lower), check_finite=bool(check_finite)),
        *together(ab, b))
