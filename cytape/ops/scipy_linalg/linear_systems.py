"""Common parts of solvers of linear equations: right-hand sides, stacks, finite operands."""

import numpy as np

from cytape.ops.calls.operands import is_tensor, values_of
from cytape.ops.engine import batch_axis
from cytape.ops.shapes import shape_rules
from cytape.ops.shaping import expand_dims, ndim, squeeze
from cytape.ops.submodules.matrix_parts import dtype_of, square_shape, stacked_shape
from cytape.tensor.values.spec import symbolic_spec


def any_tensor(*operands):
    """Return whether an operand is a tensor, or a list that holds one."""
    return any(map(is_tensor, operands))


def by_columns(solve, a, b, *more):
    """Solve for a vector as for a matrix of one column."""
    if ndim(b) != 1:
        return solve(a, b, *more)
    return squeeze(solve(a, expand_dims(b, 1), *more), -1)


def as_floats(*arrays):
    """Return arrays of floats or complex numbers: SciPy computes with booleans in float32."""
    return [x if x.dtype.kind in "fc" else x.astype(float) for x in arrays]


def require_finite(*arrays):
    """Raise SciPy's error for infinities and NaN."""
    for x in arrays:
        if x.dtype.kind in "fc" and not np.isfinite(x).all():
            raise ValueError("array must not contain infs or NaNs")


def solution_spec(what):
    """Return the shape rule of a solver of matrices with equations for a matrix of columns."""

    def rule(a, b, *_, **__):
        *stack, side, _ = square_shape(a, what)
        *other, height, width = stacked_shape(b, what)
        if shape_rules.differ(side, height):
            raise ValueError(
                f"{what}: matrices of {side} rows do not fit right-hand sides of {height} rows")
        shape = shape_rules.broadcast((*stack,), (*other,), what=what)
        return symbolic_spec((*shape, height if side is None else side, width), dtype_of(a, b))

    return rule


def in_stacks(jvp):
    """Return a jvp for tangents with an axis of directions in front of axes of stacks."""

    def batched(op, *tangents):
        n_axes = max([spec.ndim for spec in op.input_specs])
        return jvp(op, *[
            t if t is None else batch_axis.with_axes(t, n_axes) for t in tangents])

    return batched


def checked(check_finite, *xs):
    """Raise SciPy's error for infinities and NaN in tensors with values, if asked to."""
    if check_finite:
        require_finite(*[x for x in map(values_of, xs) if x is not None])
