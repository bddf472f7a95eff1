"""Reductions of slices along an axis, as `numpy.ufunc.reduceat`.

Sums, differences and extrema accept all of NumPy's indices. For other ufuncs, slices must be
consecutive: each ends where the next one begins. Their derivative is one partial derivative per
element, which multiplies a tangent before it is summed, or a gradient after it is spread.
"""

import numpy as np

from cytape.ops.calculus.slice_extrema import fold_at_extrema, spread, spread_to_extrema
from cytape.ops.calls.operands import axis_in_batch, wide
from cytape.ops.constants import zeros_like
from cytape.ops.cumulative import begins_op, partials, products_back_op, products_tangent_op, times
from cytape.ops.elementwise import add, where
from cytape.ops.engine import batch_axis
from cytape.ops.engine.op_kinds import find, general, multilinear, nondifferentiable
from cytape.ops.joining import concatenate
from cytape.ops.linear_recurrences import recurrence_op
from cytape.ops.matrix_products import conj_if_complex
from cytape.ops.shapes import shape_rules
from cytape.ops.shaping import moveaxis
from cytape.tensor.values.spec import symbolic_spec

from .ufunc_folds import fold_op, result_dtype, slopes_of_fold

EXTREMA = {np.maximum, np.minimum, np.fmax, np.fmin}


def _with_extent(x, axis, n, dtype=None):
    shape = list(shape_rules.shape_of(x, "reduceat"))
    shape[axis] = n
    return symbolic_spec(tuple(shape), x.dtype if dtype is None else dtype)


def _spec(x, starts, *, axis, dtype=None, **_):
    return _with_extent(x, axis, starts.shape[0] if starts.shape else None, dtype)


def _ufunc(name):
    return find(name).forward


def _reduce_at(x, starts, *, name, axis):
    return _ufunc(name).reduceat(x, starts, axis)


# -- sums and differences, and their transpose ---------------------------------------------------


def _by(kernel, moving, *arrays):
    """Call a kernel for a gradient or tangent and similar arrays; half precision is widened."""
    dtype = moving.dtype
    common = wide(dtype) if dtype.kind in "fc" else np.dtype(float)
    return kernel(*[x.astype(common, copy=False) for x in (moving, *arrays)]).astype(
        dtype, copy=False)


def _sums_transpose(op, g, starts):
    n = op.input_specs[0].shape[op.attrs["axis"]]
    return NotImplemented if n is None else spread_op(g, starts, n=n, **op.attrs)


def _spread(g, starts, *, n, name, axis):
    return _by(lambda g: spread(g, starts, n, axis, _ufunc(name) is np.subtract), g)


sums_op = multilinear(
    "SumsOfSlices", _reduce_at, _sums_transpose, None,
    shape_rule=_spec, batch=batch_axis.along_axis)
spread_op = multilinear(
    "SpreadOverSlices", _spread,
    lambda op, g, starts: sums_op(g, starts, name=op.attrs["name"], axis=op.attrs["axis"]), None,
    shape_rule=lambda g, starts, *, n, axis, **_: _with_extent(g, axis, n),
    batch=batch_axis.along_axis)


# -- extrema ---------------------------------------------------------------------------------------


def _broadcast_beside(x, shape, axis):
    """Broadcast an array to a shape, but for its extent along an axis."""
    shape = (*shape[:axis], x.shape[axis], *shape[axis + 1:])
    return x if x.shape == shape else np.broadcast_to(x, shape)


def _at_elements(kernel):
    """Make a forward function of a kernel.

    Elements and extrema may have extents of one where the gradients or tangents have a batch axis.
    """
    def forward(moving, x, y, starts, *, axis):
        x, y = (_broadcast_beside(z, moving.shape, axis) for z in (x, y))
        return _by(lambda moving, x, y: kernel(moving, x, y, starts, axis), moving, x, y)

    return forward


def _extrema_in_batch(call):
    """Give all operands the batch axis, elements and extrema that are shared one of length one."""
    moving = batch_axis.repeated_at(call, 0)
    if call.mapped[3] or moving is None:
        return NotImplemented
    _, x, y, starts = call.inputs
    x, y = (z if mapped else z[None] for z, mapped in zip(
        (x, y), call.mapped[1:3], strict=True))
    return call.again([moving, x, y, starts], axis=call.attrs["axis"] + 1)


to_extrema_op = multilinear(
    "SpreadToExtrema", _at_elements(spread_to_extrema),
    lambda op, t, x, y, starts: of_extrema_op(t, x, y, starts, **op.attrs), None, None, None,
    shape_rule=lambda g, x, y, starts, *, axis: _with_extent(
        g, axis, shape_rules.shape_of(x, "reduceat")[axis]), batch=_extrema_in_batch)
of_extrema_op = multilinear(
    "FoldAtExtrema", _at_elements(fold_at_extrema),
    lambda op, g, x, y, starts: to_extrema_op(g, x, y, starts, **op.attrs), None, None, None,
    shape_rule=lambda t, x, y, starts, *, axis: _spec(t, starts, axis=axis),
    batch=_extrema_in_batch)


# -- partial derivatives ---------------------------------------------------------------------------


def _partials_by_folds(x, starts, name, axis):
    """Return the partial derivatives: the slopes of a fold, from each element to its slice's end.

    Results for elements before the first slice are not used.
    """
    x = moveaxis(x, axis, -1)
    begins = begins_op(starts, n=x.shape[-1])
    a, b = slopes_of_fold(name, x, fold_op(x, begins, name=name, axis=x.ndim - 1), begins)
    ends = concatenate([begins[1:], np.ones(1, bool)])
    to_end = recurrence_op(a, where(ends, zeros_like(x) + 1, 0), backwards=True)
    return moveaxis(to_end * b, -1, axis)


def _partials(op):
    (x, starts), name, axis = op.inputs, op.attrs["name"], op.attrs["axis"]
    if _ufunc(name) is np.multiply:
        return partials(x, starts, axis=(axis,))
    return _partials_by_folds(x, starts, name, axis)


# -- reductions ------------------------------------------------------------------------------------


def _vjp(op, g):
    (x, starts), name, axis = op.inputs, op.attrs["name"], op.attrs["axis"]
    if _ufunc(name) in EXTREMA:
        return to_extrema_op(g, x, op.outputs[0], starts, axis=axis), None
    n = op.input_specs[0].shape[axis]
    if n is None:
        return NotImplemented
    if _ufunc(name) is np.multiply:
        return products_back_op(
            g, conj_if_complex(x), starts, axis=(axis,), cumulative=False), None
    spread_out = spread_op(g, starts, n=n, name=add.name, axis=axis)
    return times(spread_out, conj_if_complex(_partials(op))), None


def _jvp(op, t, _):
    (x, starts), name, axis = op.inputs, op.attrs["name"], op.attrs["axis"]
    in_batch = axis_in_batch(axis, t.ndim) if t.ndim > op.input_specs[0].ndim else axis
    if _ufunc(name) in EXTREMA:
        y = op.outputs[0]
        x, y = (x, y) if in_batch == axis else (x[None], y[None])
        return of_extrema_op(t, x, y, starts, axis=in_batch)
    if op.input_specs[0].shape[axis] is None:
        return NotImplemented
    if _ufunc(name) is np.multiply and in_batch == axis:
        return products_tangent_op(x, t, starts, axis=(axis,), cumulative=False)
    return sums_op(times(t, _partials(op)), starts, name=add.name, axis=in_batch)


reduce_at_op = general(
    "ReduceAt", _reduce_at, vjp=_vjp, jvp=_jvp, saved_outputs=(0,), batched=_jvp,
    shape_rule=_spec, batch=batch_axis.along_axis)
# The same for ufuncs that are not differentiable.
reduce_steps_at_op = nondifferentiable(
    "ReduceStepsAt", _reduce_at,
    shape_rule=lambda x, starts, *, name, axis: _spec(
        x, starts, axis=axis, dtype=result_dtype(_ufunc(name), x.dtype)),
    batch=batch_axis.along_axis)


# -- slices that are not consecutive ---------------------------------------------------------------


def check_indices(indices, n, name, dtype):
    """Raise NumPy's error for indices out of bounds."""
    if indices.ndim != 1 or indices.dtype.kind not in "iu" or (
            indices.size and not 0 <= indices.min() <= indices.max() < n):
        _ufunc(name).reduceat(np.ones(n, dtype), indices)


def slices_of(x, indices, *, name, axis):
    """Return the elements of all slices, and the begins of the slices among these."""
    n = x.shape[axis]
    check_indices(indices, n, name, x.dtype)
    indices = indices.astype(np.intp, copy=False)
    following = np.append(indices[1:], n).astype(np.intp)[:indices.size]
    lengths = np.where(indices < following, following - indices, 1)
    starts = np.cumsum(lengths) - lengths
    elements = np.arange(lengths.sum()) - np.repeat(starts - indices, lengths)
    return elements.astype(np.intp, copy=False), starts.astype(np.intp, copy=False)


slices_op = nondifferentiable(
    "SlicesOfReduceAt", slices_of, shape_rule=lambda x, indices, **_: (
        symbolic_spec((None,), np.intp),
        symbolic_spec(indices.shape and indices.shape[:1], np.intp)))


def follow_each_other(indices, n):
    """Return whether slices that begin at these indices are consecutive."""
    return indices.ndim == 1 and indices.dtype.kind in "iu" and (
        not indices.size
        or 0 <= indices[0] and indices[-1] < n and bool((indices[1:] > indices[:-1]).all()))
