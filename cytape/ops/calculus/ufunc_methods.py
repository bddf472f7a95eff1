"""The methods of ufuncs: `reduce`, `accumulate`, `reduceat`, `outer`, and `at`, which assigns.

Sums, products and extrema are `numpy.sum` and its kin. The others fold: each result is the ufunc of
the one before it and the next element, y[k] = f(y[k-1], x[k]). So tangents follow a linear
recurrence, and gradients the same one backwards. Where operands tie at a kink of the ufunc, as in
`maximum.accumulate`, each fold has the ufunc's own derivative: half of it to each.
"""

import importlib
import math

import numpy as np
from numpy.lib.array_utils import normalize_axis_index, normalize_axis_tuple

from cytape.errors import SymbolicTensorError
from cytape.ops import products, reductions, steps
from cytape.ops.broadcasting import broadcast_to
from cytape.ops.constants import ones_like, zeros_like
from cytape.ops.creation import astype
from cytape.ops.elementwise import conj, fmax, fmin, maximum, minimum, where
from cytape.ops.engine.arguments import (
    is_given,
    is_tensor,
    keeps_axes,
    mask_for,
    operand,
    values_of,
    with_out,
)
from cytape.ops.engine.declare import find, general, nondifferentiable
from cytape.ops.indexing import take
from cytape.ops.joining import concatenate
from cytape.ops.rearranging import flip
from cytape.ops.reductions import filled, start
from cytape.ops.shaping import expand_dims, moveaxis, ndim, shape, squeeze
from cytape.ops.shared.grouping import together
from cytape.tensor import Tensor, convert_to_tensor
from cytape.tensor.spec import spec_like, symbolic_spec

__all__ = ["METHODS"]

_NoValue = np._NoValue
_REDUCTIONS = {
    np.add: reductions.sum, np.multiply: products.prod, np.maximum: reductions.max,
    np.minimum: reductions.min, np.logical_and: steps.all, np.logical_or: steps.any,
}  # fmt: skip
_ACCUMULATIONS = {np.add: products.cumsum, np.multiply: products.cumprod}
# What a second operand may be replaced by where `where` leaves it out: f(y, neutral) is y.
_NEUTRAL = {
    np.subtract: 0, np.hypot: 0, np.logical_and: 1, np.logical_or: 0, np.logical_xor: 0,
    np.bitwise_or: 0, np.bitwise_xor: 0, np.bitwise_and: -1, np.left_shift: 0, np.right_shift: 0,
    np.divide: 1, np.power: 1, np.float_power: 1, np.logaddexp: -np.inf, np.logaddexp2: -np.inf,
    np.fmax: np.nan, np.fmin: np.nan,
}  # fmt: skip


# -- linear recurrences ----------------------------------------------------------------------------


def _times(a, y):
    return np.where(y == 0, 0, a * y)  # what stands still does, whatever the factor


def _recurrence(a, b):
    """Solve y[k] = a[k] * y[k-1] + b[k] along the last axis, in rows of which each goes on."""
    n, lead, dtype = b.shape[-1], b.shape[:-1], np.result_type(a, b)
    width = n if math.prod(lead) >= n else math.isqrt(n) + 1
    n_rows = -(-n // width) if n else 0
    rest = np.zeros((*lead, n_rows * width - n), dtype)
    a, b = (np.concatenate([x, rest], -1).reshape(*lead, n_rows, width) for x in (a, b))
    with np.errstate(invalid="ignore", over="ignore"):
        for j in range(1, width if n else 0):
            b[..., j] += _times(a[..., j], b[..., j - 1])
            a[..., j] *= a[..., j - 1]
        for i in range(1, n_rows):
            b[..., i, :] += _times(a[..., i, :], b[..., i - 1, -1:])
    return b.reshape(*lead, n_rows * width)[..., :n]


def _before(y):
    """Return for each element along the last axis the one before it, for the first 0."""
    return concatenate([zeros_like(y[..., :1]), y[..., :-1]], axis=-1)


def _backwards(a, g):
    """Solve r[k] = g[k] + conj(a[k+1]) * r[k+1] along the last axis."""
    factors = _before(flip(conj(a) if a.dtype.kind == "c" else a, -1))
    return flip(recurrence_op(factors, flip(g, -1)), -1)


def _recurrence_vjp(op, g):
    total, before = _backwards(op.inputs[0], g), _before(op.outputs[0])
    return total * (conj(before) if before.dtype.kind == "c" else before), total


def _recurrence_jvp(op, ta, tb):
    moved = 0 if ta is None else ta * _before(op.outputs[0])
    return recurrence_op(op.inputs[0], moved if tb is None else tb + moved)


recurrence_op = general(
    "LinearRecurrence",
    _recurrence,
    vjp=_recurrence_vjp,
    jvp=_recurrence_jvp,
    saved_inputs=(0,),
    saved_outputs=(0,),
    shape_rule=lambda a, b: spec_like(b, np.result_type(a.dtype, b.dtype)),
)


# -- folds -----------------------------------------------------------------------------------------


def _fold(x, *begins, name, axis):
    accumulate = find(name).forward.accumulate
    if not begins or not len(begins[0]):
        return accumulate(x, axis)
    parts = np.split(x, np.flatnonzero(begins[0])[1:], axis)
    return np.concatenate([accumulate(part, axis) for part in parts], axis)


def _factor(partial, z, x, y):
    """Return a partial derivative as factors of the gradient."""
    if partial is None:
        return zeros_like(z)
    factor = partial(z, x, y)
    if callable(factor):
        return factor(ones_like(z))
    if isinstance(factor, int | float):
        return factor * ones_like(z)
    return factor if factor.dtype == z.dtype else astype(factor, z.dtype)


def _slopes(op):
    """Return the derivatives of each result in the one before it and in its own element."""
    x, y = (moveaxis(z, op.attrs["axis"], -1) for z in (op.inputs[0], op.outputs[0]))
    first, operands = zeros_like(y[..., :1]), (y[..., 1:], y[..., :-1], x[..., 1:])
    with np.errstate(all="ignore"):  # as kernel programs are quiet
        a, b = [_factor(partial, *operands) for partial in find(op.attrs["name"]).partials]
    a, b = concatenate([first, a], axis=-1), concatenate([first + 1, b], axis=-1)
    for begins in op.inputs[1:]:
        a, b = where(begins, 0, a), where(begins, 1, b)
    return a, b


def _fold_vjp(op, g):
    a, b = _slopes(op)
    total = _backwards(a, moveaxis(g, op.attrs["axis"], -1))
    dx = moveaxis(total * (conj(b) if b.dtype.kind == "c" else b), -1, op.attrs["axis"])
    return (dx, None) if len(op.inputs) == 2 else dx


def _fold_jvp(op, t, *_):
    a, b = _slopes(op)
    return moveaxis(recurrence_op(a, b * moveaxis(t, op.attrs["axis"], -1)), -1, op.attrs["axis"])


fold_op = general(
    "Fold", _fold, vjp=_fold_vjp, jvp=_fold_jvp, saved_outputs=(0,),
    shape_rule=lambda x, *_, **__: x)
# The same of ufuncs that are not connected.
fold_steps_op = nondifferentiable(
    "FoldSteps", _fold,
    shape_rule=lambda x, *_, name, **__: spec_like(x, _result_dtype(find(name).forward, x.dtype)))


def _result_dtype(ufunc, dtype, asked=None):
    """Return the dtype of folds, or raise NumPy's error for one that is asked for."""
    return ufunc.accumulate(np.ones(1, dtype), dtype=asked).dtype


def _folded(op, a, axis, *begins):
    """Accumulate along an axis, beginning anew where it is said to."""
    is_step = all(partial is None for partial in op.partials)
    return (fold_steps_op if is_step else fold_op)(a, *begins, name=op.name, axis=axis)


def _slices(x, indices, *, name, axis):
    """Return the elements of the slices of `reduceat`, which begin one, and where slices end."""
    n = x.shape[axis]
    find(name).forward.reduceat(np.ones(n, x.dtype), indices)  # raises what is to raise
    slices = [range(i, j) if i < j else range(i, i + 1)
              for i, j in zip(indices, [*indices, n][1:len(indices) + 1], strict=True)]
    ends = np.cumsum([len(s) for s in slices], dtype=np.intp)
    elements = np.concatenate([np.zeros(0, np.intp), *slices]).astype(np.intp)
    begins = np.zeros(len(elements), bool)
    begins[ends[:-1]] = begins[:1] = True
    return elements, begins, ends - 1


slices_op = nondifferentiable(
    "SlicesOfReduceAt", _slices, shape_rule=lambda x, indices, **_: (
        symbolic_spec((None,), np.intp), symbolic_spec((None,), bool), spec_like(indices, np.intp)))


def _converted(op, a, dtype):
    """Return the operand of a fold as a tensor of the dtype of the result."""
    a = convert_to_tensor(a)
    dtype = _result_dtype(op.forward, a.dtype, dtype)
    return a if a.dtype == dtype else astype(a, dtype)


def _nothing(a, axis):
    """Return zeros of the shape of one element along an axis, also where there is none."""
    if a.spec.known:
        return np.zeros([1 if i == axis else n for i, n in enumerate(a.shape)], a.dtype)
    return reductions.sum(zeros_like(a), axis, a.dtype, keepdims=True)


# -- the methods -----------------------------------------------------------------------------------


def reduce(op, a, axis=0, dtype=None, out=None, keepdims=False, initial=_NoValue, where=_NoValue):
    """Reduce along axes, as `numpy.ufunc.reduce`."""
    if op in (fmax, fmin) and operand(a).dtype.kind not in "fc":  # there is no NaN
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
    # NumPy's opinion of axes, and of a mask without a start.
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
        elif shape(a)[axis] == 0:
            ufunc.reduce(np.ones(0))  # raises NumPy's error
        last = slice(-1, None) if keepdims else -1
        a = _folded(op, a, axis)[(slice(None),) * axis + (last,)]
    return a


def _step_by_step(op, a, mask, axes, y, keepdims):
    """Fold along an axis with a mask, where nothing can stand for what it leaves out."""
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
    indices = np.zeros(0, np.intp) if is_empty else operand(indices)
    axis = normalize_axis_index(axis, ndim(array))
    if array.shape[axis] is not None and values_of(indices) is not None:
        # Only the extent along the axis counts.
        outline = np.broadcast_to(np.zeros((), array.dtype), [n or 0 for n in array.shape])
        elements, begins, ends = _slices(outline, values_of(indices), name=op.name, axis=axis)
    else:
        elements, begins, ends = slices_op(array, indices, name=op.name, axis=axis)
    return take(_folded(op, take(array, elements, axis), axis, begins), ends, axis)


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
        return importlib.import_module("cytape.ops.choosing.writers").at(op, a, indices, *b)
    if is_tensor([a, indices, *b]):
        raise TypeError(
            f"numpy.{ufunc.__name__}.at changes an array in place: one of NumPy's cannot hold the "
            "derivative of a tensor. Make it with cytape.numpy.zeros or cytape.constant(array), "
            "which are tensors; or write x.at[indices].add(values), or multiply, min or max, which "
            "return a new one; sums of what belongs to the same index are also "
            "cytape.IndexedSlices(values, indices, shape).to_tensor(); or pass tensor.numpy() if "
            "the derivative should stop here")
    return ufunc.at(a, indices, *b)


METHODS = {f.__name__: f for f in (reduce, accumulate, reduceat, outer, at)}
