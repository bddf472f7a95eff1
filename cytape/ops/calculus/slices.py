"""Reductions of slices along an axis, as `numpy.ufunc.reduceat` computes them.

Here slices follow each other and end where the next one begins. The derivative of such a reduction
is the partial derivative in each element: a gradient is spread over the slices and multiplied by
it, a tangent is multiplied by it and summed over slices.
"""

import numpy as np

from cytape.ops.constants import zeros_like
from cytape.ops.elementwise import where
from cytape.ops.engine.arguments import axis_in_batch
from cytape.ops.engine.declare import find, general, multilinear, nondifferentiable
from cytape.ops.joining import concatenate
from cytape.ops.linalg import conj_if_complex
from cytape.ops.products import begins_op, partials_op, times
from cytape.ops.recurrences import recurrence_op
from cytape.ops.shapes import shape_rules
from cytape.ops.shaping import moveaxis
from cytape.tensor.spec import symbolic_spec

from .folds import fold_op, result_dtype, slopes_of_fold


def _spec(x, starts, *, axis, dtype=None):
    shape = list(shape_rules.shape_of(x, "reduceat"))
    shape[axis] = starts.shape[0] if starts.shape else None
    return symbolic_spec(tuple(shape), x.dtype if dtype is None else dtype)


# -- sums, and their transpose ---------------------------------------------------------------------


def _spread(g, starts, *, n, axis):
    counts = np.diff(starts, append=n)
    if not starts.size or starts[0]:
        before = np.zeros((*g.shape[:axis], 1, *g.shape[axis + 1:]), g.dtype)
        g = np.concatenate([before, g], axis)
        counts = np.concatenate([starts[:1] if starts.size else [n], counts])
    return np.repeat(g, counts, axis)


def _spread_spec(g, starts, *, n, axis):
    shape = list(shape_rules.shape_of(g, "reduceat"))
    shape[axis] = n
    return symbolic_spec(tuple(shape), g.dtype)


def _in_batch(op, place, x, starts):
    return op.op(x, starts, **op.attrs | {"axis": axis_in_batch(op.attrs["axis"], x.ndim)})


def _sums_transpose(op, g, starts):
    n = op.input_specs[0].shape[op.attrs["axis"]]
    return NotImplemented if n is None else spread_op(g, starts, n=n, axis=op.attrs["axis"])


sums_op = multilinear(
    "SumsOfSlices", lambda x, starts, *, axis: np.add.reduceat(x, starts, axis),
    _sums_transpose, None, batched=_in_batch, shape_rule=_spec)
spread_op = multilinear(
    "SpreadOverSlices", _spread,
    lambda op, g, starts: sums_op(g, starts, axis=op.attrs["axis"]), None,
    batched=_in_batch, shape_rule=_spread_spec)


# -- partial derivatives ---------------------------------------------------------------------------


def _partials_by_folds(x, starts, name, axis):
    """Return the partial derivatives: the slopes of a fold, from each element to its slice's end.

    Elements before the first slice belong to none; what they get here does not count.
    """
    x = moveaxis(x, axis, -1)
    begins = begins_op(starts, n=x.shape[-1])
    a, b = slopes_of_fold(name, x, fold_op(x, begins, name=name, axis=x.ndim - 1), begins)
    ends = concatenate([begins[1:], np.ones(1, bool)])
    to_end = recurrence_op(a, where(ends, zeros_like(x) + 1, 0), backwards=True)
    return moveaxis(to_end * b, -1, axis)


def _of_differences(x, starts, *, name, axis):
    partials = np.full(x.shape, -1, x.dtype)
    np.moveaxis(partials, axis, 0)[starts] = 1
    return partials


def _of_extrema(x, starts, *, name, axis):
    extrema = find(name).forward.reduceat(x, starts, axis)
    chosen = x == _spread(extrema, starts, n=x.shape[axis], axis=axis)
    np.moveaxis(chosen, axis, 0)[:starts[0] if starts.size else None] = False
    if np.count_nonzero(chosen) == extrema.size:  # no ties, no NaN
        return chosen.astype(x.dtype)
    return np.asarray(_partials_by_folds(x, starts, name, axis))


def _constant_partials(x, starts, *, name, axis):
    make = _of_differences if name == "Subtract" else _of_extrema
    return make(x, starts, name=name, axis=axis)


# Partial derivatives that do not change with the elements, as long as extrema stay where they are.
constant_partials_op = nondifferentiable(
    "ConstantPartialsOfSlices", _constant_partials, shape_rule=lambda x, *_, **__: x)



def has_constant_partials(name):
    """Tell whether partial derivatives do not change with the elements, but at ties."""
    return name in ("Subtract", "Maximum", "Minimum", "Fmax", "Fmin")


def _partials(op):
    (x, starts), name, axis = op.inputs, op.attrs["name"], op.attrs["axis"]
    if name == "Multiply":
        return partials_op(x, starts, axis=(axis,))
    if has_constant_partials(name):
        return constant_partials_op(x, starts, name=name, axis=axis)
    return _partials_by_folds(x, starts, name, axis)


def _scaled(op, moving, conjugated=False):
    """Multiply a gradient or tangent by the partial derivatives; 0 * inf is 0 on either side."""
    partials = _partials(op)
    if has_constant_partials(op.attrs["name"]):
        return partials * where(partials == 0, 0, moving)
    return times(moving, conj_if_complex(partials) if conjugated else partials)


# -- reductions ------------------------------------------------------------------------------------


def _vjp(op, g):
    axis = op.attrs["axis"]
    n = op.input_specs[0].shape[axis]
    if n is None:
        return NotImplemented
    spread = spread_op(g, op.inputs[1], n=n, axis=axis)
    return _scaled(op, spread, conjugated=True), None


def _jvp(op, t, _):
    axis = op.attrs["axis"]
    if op.input_specs[0].shape[axis] is None:
        return NotImplemented
    terms = _scaled(op, t)
    return sums_op(terms, op.inputs[1], axis=axis_in_batch(axis, t.ndim) if (
        t.ndim > op.input_specs[0].ndim) else axis)


def _reduce_at(x, starts, *, name, axis):
    return find(name).forward.reduceat(x, starts, axis)


reduce_at_op = general(
    "ReduceAt", _reduce_at, vjp=_vjp, jvp=_jvp, batched=_jvp,
    shape_rule=lambda x, starts, *, name, axis: _spec(x, starts, axis=axis))
# The same of ufuncs that are not connected.
reduce_steps_at_op = nondifferentiable(
    "ReduceStepsAt", _reduce_at,
    shape_rule=lambda x, starts, *, name, axis: _spec(
        x, starts, axis=axis, dtype=result_dtype(find(name).forward, x.dtype)))


# -- slices that do not follow each other ----------------------------------------------------------


def slices_of(x, indices, *, name, axis):
    """Return the elements of slices, and where among these the slices begin."""
    n = x.shape[axis]
    if indices.ndim != 1 or indices.dtype.kind not in "iu" or (
            indices.size and not 0 <= indices.min() <= indices.max() < n):
        find(name).forward.reduceat(np.ones(n, x.dtype), indices)  # raises what is to raise
        indices = indices.astype(np.intp)
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
    """Tell whether slices that begin at indices go on to the next one each."""
    return indices.ndim == 1 and indices.dtype.kind in "iu" and (
        not indices.size
        or 0 <= indices[0] and indices[-1] < n and bool((indices[1:] > indices[:-1]).all()))
