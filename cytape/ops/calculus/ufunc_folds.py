"""Folds by ufuncs, y[k] = f(y[k-1], x[k]), as `numpy.ufunc.accumulate`.

Tangents follow a linear recurrence, gradients the same one backwards. At a tie, as in
`maximum.accumulate`, each step has the derivative of the ufunc: half to each operand.
"""

import numpy as np

from cytape.ops.calculus.fold_loops import fold_slices
from cytape.ops.constants import ones_like, zeros_like
from cytape.ops.creation import astype
from cytape.ops.elementwise import where
from cytape.ops.engine import batch_axis
from cytape.ops.engine.op_kinds import find, general, nondifferentiable
from cytape.ops.joining import concatenate
from cytape.ops.linear_recurrences import recurrence_op
from cytape.ops.matrix_products import conj_if_complex
from cytape.ops.shaping import moveaxis
from cytape.tensor.values.spec import spec_like


def _fold(x, begins=None, *, name, axis):
    ufunc = find(name).forward
    if begins is None or not len(begins):
        return ufunc.accumulate(x, axis)
    if begins.shape != (x.shape[axis],):
        raise ValueError(
            f"expected a mask of the {x.shape[axis]} elements where slices begin, got an array of "
            f"shape {begins.shape}")
    starts = np.flatnonzero(begins)
    if not starts.size or starts[0]:
        starts = np.concatenate([[0], starts])
    y = fold_slices(ufunc, np.moveaxis(x, axis, -1), starts)
    if y is not None:
        return np.moveaxis(y, -1, axis)
    parts = np.split(x, starts[1:], axis)
    return np.concatenate([ufunc.accumulate(part, axis) for part in parts], axis)


def _factor(partial, z, x, y):
    """Return a partial derivative as an array of factors."""
    if partial is None:
        return zeros_like(z)
    factor = partial(z, x, y)
    if callable(factor):
        return factor(ones_like(z))
    if isinstance(factor, int | float):
        return factor * ones_like(z)
    return factor if factor.dtype == z.dtype else astype(factor, z.dtype)


def slopes_of_fold(name, x, y, *begins):
    """Return the derivatives of each result in its predecessor and in its element.

    x, y: the elements and results, along the last axis.
    """
    first, operands = zeros_like(y[..., :1]), (y[..., 1:], y[..., :-1], x[..., 1:])
    with np.errstate(all="ignore"):  # kernel programs do not warn either
        a, b = [_factor(partial, *operands) for partial in find(name).partials]
    a, b = concatenate([first, a], axis=-1), concatenate([first + 1, b], axis=-1)
    for each in begins:
        a, b = where(each, 0, a), where(each, 1, b)
    return a, b


def _slopes(op):
    x, y = (moveaxis(z, op.attrs["axis"], -1) for z in (op.inputs[0], op.outputs[0]))
    return slopes_of_fold(op.attrs["name"], x, y, *op.inputs[1:])


def _fold_vjp(op, g):
    a, b = _slopes(op)
    total = recurrence_op(
        conj_if_complex(a), moveaxis(g, op.attrs["axis"], -1), backwards=True)
    dx = moveaxis(total * conj_if_complex(b), -1, op.attrs["axis"])
    return (dx, None) if len(op.inputs) == 2 else dx


def _fold_jvp(op, t, *_):
    a, b = _slopes(op)
    return moveaxis(recurrence_op(a, b * moveaxis(t, op.attrs["axis"], -1)), -1, op.attrs["axis"])


fold_op = general(
    "Fold", _fold, vjp=_fold_vjp, jvp=_fold_jvp, saved_outputs=(0,),
    shape_rule=lambda x, *_, **__: x, batch=batch_axis.along_axis)
# The same for ufuncs that are not differentiable.
fold_steps_op = nondifferentiable(
    "FoldSteps", _fold,
    shape_rule=lambda x, *_, name, **__: spec_like(x, result_dtype(find(name).forward, x.dtype)),
    batch=batch_axis.along_axis)


def result_dtype(ufunc, dtype, asked=None):
    """Return the dtype of folds, or raise NumPy's error for a requested one."""
    return ufunc.accumulate(np.ones(1, dtype), dtype=asked).dtype


def is_step(op):
    """Return whether an op is not differentiable."""
    return all(partial is None for partial in op.partials)
