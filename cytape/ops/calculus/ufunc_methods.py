"""The methods of ufuncs: `reduce`, `accumulate`, `reduceat`, `outer`, and `at`, which assigns.

Sums, products and extrema call `numpy.sum` and similar functions; other ufuncs fold.
"""

import importlib

import numpy as np
from numpy.lib.array_utils import normalize_axis_index, normalize_axis_tuple

from cytape.errors import DetachedError, SymbolicTensorError
from cytape.ops import comparisons, cumulative, reductions
from cytape.ops.adjoints.extent_checks import with_extents
from cytape.ops.adjoints.identity_groups import together
from cytape.ops.broadcasting import broadcast_to
from cytape.ops.calls.operands import (
    is_given,
    is_tensor,
    keeps_axes,
    mask_for,
    operand,
    values_of,
    with_out,
)
from cytape.ops.constants import zeros_like
from cytape.ops.creation import astype
from cytape.ops.elementwise import fmax, fmin, maximum, minimum, where
from cytape.ops.indexing import take
from cytape.ops.joining import concatenate
from cytape.ops.reductions import filled, start
from cytape.ops.shaping import expand_dims, ndim, shape, squeeze
from cytape.tensor import Tensor, convert_to_tensor

from .reduceat import (
    EXTREMA,
    check_indices,
    follow_each_other,
    reduce_at_op,
    reduce_steps_at_op,
    slices_of,
    slices_op,
    sums_op,
)
from .ufunc_folds import fold_op, fold_steps_op, is_step, result_dtype

__all__ = ["METHODS"]

_NoValue = np._NoValue
_REDUCTIONS = {
    np.add: reductions.sum, np.multiply: cumulative.prod, np.maximum: reductions.max,
    np.minimum: reductions.min, np.logical_and: comparisons.all, np.logical_or: comparisons.any,
}  # fmt: skip
_ACCUMULATIONS = {np.add: cumulative.cumsum, np.multiply: cumulative.cumprod}
_AT_INDICES = {np.add, np.subtract, *EXTREMA}  # ufuncs that accept all of NumPy's indices
# Neutral second operands for elements that `where` excludes: f(y, neutral) is y.
_NEUTRAL = {
    np.subtract: 0, np.hypot: 0, np.logical_and: 1, np.logical_or: 0, np.logical_xor: 0,
    np.bitwise_or: 0, np.bitwise_xor: 0, np.bitwise_and: -1, np.left_shift: 0, np.right_shift: 0,
    np.divide: 1, np.power: 1, np.float_power: 1, np.logaddexp: -np.inf, np.logaddexp2: -np.inf,
    np.fmax: np.nan, np.fmin: np.nan,
}  # fmt: skip


def _folded(op, a, axis):
    """Accumulate along an axis."""
    return (fold_steps_op if is_step(op) else fold_op)(a, name=op.name, axis=axis)


def _converted(op, a, dtype):
    """Return the operand of a fold as a tensor of the dtype of the result."""
    a = convert_to_tensor(a)
    dtype = result_dtype(op.forward, a.dtype, dtype)
    return a if a.dtype == dtype else astype(a, dtype)


def _reduced_at(op, a, starts, axis):
    """Reduce the slices that begin at indices."""
    reduced = sums_op if op.forward in (np.add, np.subtract) else (
        reduce_steps_at_op if is_step(op) else reduce_at_op)
    return reduced(a, starts, name=op.name, axis=axis)


def _nothing(a, axis):
    """Return zeros of the shape of one element along an axis, also where there is none."""
    if a.spec.known:
        return np.zeros([1 if i == axis else n for i, n in enumerate(a.shape)], a.dtype)
    return reductions.sum(zeros_like(a), axis, a.dtype, keepdims=True)


# -- the methods -----------------------------------------------------------------------------------


def reduce(op, a, axis=0, dtype=None, out=None, keepdims=False, initial=_NoValue, where=_NoValue):
    """Reduce along axes, as `numpy.ufunc.reduce`."""
    if op in (fmax, fmin) and operand(a).dtype.kind not in "fc":  # without NaN
        op = maximum if op is fmax else minimum
    ufunc = op.forward
    given = {"initial": initial, "where": where}
    given = {name: value for name, value in given.items() if is_given(value)}
    if not is_tensor([a, initial, where]):
        return ufunc.reduce(a, axis, dtype, out, keepdims, **given)
    if out is not None:
        return with_out(ufunc.reduce, out, a, axis=axis, dtype=dtype, keepdims=keepdims, **given)
    keepdims = keeps_axes(keepdims)
    takes_start = ufunc not in (np.logical_and, np.logical_or)
    if ufunc in _REDUCTIONS and (takes_start or not is_given(initial)):
        if dtype is not None:
            a = _converted(op, a, dtype)
        return _REDUCTIONS[ufunc](a, axis=axis, keepdims=keepdims, **given)
    a, initial = together(convert_to_tensor(a), initial)
    a = _converted(op, a, dtype)
    n_axes = ndim(a)
    begin = initial if is_given(initial) else ufunc.identity
    # NumPy's checks of axes, and of a mask without `initial`.
    mask = np.True_ if "where" in given else True
    one = _NoValue if begin is None else 1
    ufunc.reduce(np.ones((1,) * n_axes, a.dtype), axis, initial=one, where=mask)
    axes = tuple(range(n_axes)) if axis is None else normalize_axis_tuple(axis, n_axes or 1)
    if begin is not None:
        begin = start(begin, a.dtype)
    if is_given(where):
        mask = mask_for(a, where)
        if ufunc not in _NEUTRAL:
            return _step_by_step(op, a, mask, axes, begin, keepdims)
        a = filled(a, mask, _NEUTRAL[ufunc])
    if not n_axes or not axes:
        return a if begin is None else op(begin, a)
    for axis in sorted(axes, reverse=True):
        if begin is not None and (axis == min(axes) or ufunc.identity is not None):
            first = begin if axis == min(axes) else start(ufunc.identity, a.dtype)
            a = concatenate([first + _nothing(a, axis), a], axis=axis)
        else:
            a = with_extents(
                a, ValueError, f"zero-size array to reduction operation {ufunc.__name__} which has "
                "no identity", least=((axis, 1),))
        last = slice(-1, None) if keepdims else -1
        if ufunc in _AT_INDICES:
            a = _reduced_at(op, a, np.zeros(1, np.intp), axis)
        else:
            a = _folded(op, a, axis)
        a = a[(slice(None),) * axis + (last,)]
    return a


def _step_by_step(op, a, mask, axes, y, keepdims):
    """Fold along an axis with a mask, for ufuncs without a neutral operand."""
    a = filled(a, mask, 1)
    if not axes:
        return where(mask, op(y, a), y)
    axis, n = axes[0], shape(a)[axes[0]]
    if n is None:
        raise SymbolicTensorError(
            f"{op.forward.__name__}.reduce with where= has to know how many elements there are "
            "along the axis while a graph is built: give the placeholder or the signature extents")
    y, mask = y + _nothing(a, axis), broadcast_to(mask, shape(a))
    for i in range(n):
        element = (slice(None),) * axis + (slice(i, i + 1),)
        y = where(mask[element], op(y, a[element]), y)
    return y if keepdims else squeeze(y, axis)


def accumulate(op, array, axis=0, dtype=None, out=None):
    """Accumulate along an axis, as `numpy.ufunc.accumulate`."""
    ufunc = op.forward
    if not is_tensor(array):
        return ufunc.accumulate(array, axis, dtype, out)
    if out is not None:
        return with_out(ufunc.accumulate, out, array, axis=axis, dtype=dtype)
    array = convert_to_tensor(array)
    if not ndim(array):
        raise TypeError("cannot accumulate on a scalar")
    if ufunc in _ACCUMULATIONS:
        return _ACCUMULATIONS[ufunc](array, axis=axis, dtype=dtype)
    axis = normalize_axis_index(axis, ndim(array))
    return _folded(op, _converted(op, array, dtype), axis)


def reduceat(op, array, indices, axis=0, dtype=None, out=None):
    """Reduce slices that begin at given indices, as `numpy.ufunc.reduceat`."""
    ufunc = op.forward
    if not is_tensor([array, indices]):
        return ufunc.reduceat(array, indices, axis, dtype, out)
    if out is not None:
        return with_out(ufunc.reduceat, out, array, indices, axis=axis, dtype=dtype)
    array = _converted(op, array, dtype)
    is_empty = isinstance(indices, (list, tuple)) and not indices  # and of floats as an array
    starts = np.zeros(0, np.intp) if is_empty else operand(indices)
    axis = normalize_axis_index(axis, ndim(array))
    n, known = array.shape[axis], values_of(starts)
    if ufunc in _AT_INDICES:
        if n is not None and known is not None:
            check_indices(known, n, op.name, array.dtype)
    elif n is None or known is None:
        elements, starts = slices_op(array, starts, name=op.name, axis=axis)
        array = take(array, elements, axis)
    elif follow_each_other(known, n):
        starts = known.astype(np.intp, copy=False)
    else:
        # Only the extent along the axis counts.
        outline = np.broadcast_to(np.zeros((), array.dtype), [n or 0 for n in array.shape])
        elements, starts = slices_of(outline, known, name=op.name, axis=axis)
        array = take(array, elements, axis)
    return _reduced_at(op, array, starts, axis)


def outer(op, A, B, /, **arguments):
    """Apply the ufunc to all pairs of elements, as `numpy.ufunc.outer`."""
    ufunc = getattr(op, "forward", None)
    if ufunc and (not is_tensor([A, B]) or ufunc.nin != 2):
        return ufunc.outer(A, B, **arguments)
    x, y = together(operand(A), operand(B))
    return op(expand_dims(x, tuple(range(ndim(x), ndim(x) + ndim(y)))), y, **arguments)


def at(op, a, indices, *b):
    """Apply the ufunc to elements of an array or tensor, in place, as `numpy.ufunc.at`."""
    ufunc = getattr(op, "forward", op)
    if isinstance(a, Tensor) and ufunc is not op:
        return importlib.import_module("cytape.ops.choosing.array_writers").at(op, a, indices, *b)
    if is_tensor([a, indices, *b]):
        raise DetachedError(
            f"numpy.{ufunc.__name__}.at changes an array in place: one of NumPy's cannot hold the "
            "derivative of a tensor. Make it with cytape.numpy.zeros or cytape.constant(array), "
            "which are tensors; or write x.at[indices].add(values), or multiply, min or max, which "
            "return a new one; sums of values at the same index are also "
            "cytape.IndexedSlices(values, indices, shape).to_tensor(); or pass tensor.numpy() if "
            "the derivative should stop here")
    return ufunc.at(a, indices, *b)


METHODS = {f.__name__: f for f in (reduce, accumulate, reduceat, outer, at)}
