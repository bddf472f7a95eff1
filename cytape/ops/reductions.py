"""Sum, mean and extrema. Other reductions are in `cumulative`, `variance` and `comparisons`.

Derivatives at points where they are not unique:

- `max` and `min`: ties share the gradient equally, as in TensorFlow and JAX;
- an extremum that equals `initial`: half of the gradient to each, as in `maximum`.

Elements that `where` excludes are replaced by a neutral number and get no gradient. Counts and sums
of half precision are computed in single precision.
"""

import math
from functools import partial
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple

from cytape.ops.adjoints.conform import count, countable, sum_to
from cytape.ops.adjoints.identity_groups import together
from cytape.ops.broadcasting import broadcast_to
from cytape.ops.calls.operands import (
    axis_in_batch,
    is_given,
    is_tensor,
    mask_for,
    only_numpy,
    values_of,
    wide,
    with_out,
)
from cytape.ops.calls.operands import operand as as_operand
from cytape.ops.constants import ones_like
from cytape.ops.creation import astype
from cytape.ops.elementwise import absolute, add, maximum, minimum, sign, where_op
from cytape.ops.engine import batch_axis
from cytape.ops.engine.op_kinds import enter, general
from cytape.ops.engine.sum_op import SumOp
from cytape.ops.shapes import shape_rules
from cytape.ops.shaping import expand_dims, ndim, squeeze
from cytape.ops.special_kernels.ties import shared_among_ties
from cytape.tensor import convert_to_tensor
from cytape.tensor.values.user_warnings import warn, warning_user

__all__ = ["amax", "amin", "max", "mean", "min", "sum"]

_NoValue = np._NoValue


def reduced_axes(op):
    """Return the axes that `op` reduces, as a tuple of non-negative integers."""
    axis, ndim = op.attrs["axis"], op.input_specs[0].ndim
    if axis is None or ndim == 0:  # NumPy allows axis 0 of a 0-d array
        return tuple(range(ndim))
    if ndim < 0:  # unknown
        return axis if isinstance(axis, tuple) else (axis,)
    if type(axis) is int and 0 <= axis < ndim:
        return (axis,)
    return normalize_axis_tuple(axis, ndim)


def n_reduced(op, at_least=0):
    """Return the number of elements reduced to one; a tensor if it is unknown."""
    spec = op.input_specs[0]
    if not spec.known:
        return count(spec, None if op.attrs["axis"] is None else reduced_axes(op), at_least)
    n = math.prod(spec.shape[axis] for axis in reduced_axes(op))
    return countable(n or at_least, spec.dtype)


def kept(op, reduced):
    """Insert the reduced axes, so that a tensor of the output's shape broadcasts to the input's."""
    if op.attrs["keepdims"] or op.attrs["axis"] is None:
        return reduced
    axes, spec = reduced_axes(op), op.input_specs[0]
    if len(axes) == spec.ndim:
        return reduced
    if not spec.known:
        return expand_dims(reduced, axes)
    shape = spec.shape
    return reduced.reshape(tuple([1 if i in axes else n for i, n in enumerate(shape)]))


def _expand(op, reduced):
    """Repeat along the reduced axes, to the input's shape."""
    return broadcast_to(kept(op, reduced), op.input_specs[0].extents)


def operand(op):
    """Return the input in the result's precision, at least in single precision."""
    x, of_result = op.inputs[0], op.output_specs[0].dtype
    dtype = wide(x.dtype if x.dtype == of_result else np.result_type(x.dtype, of_result))
    return x if x.dtype == dtype else astype(x, dtype, copy=False)


def loses_imaginary(a, dtype):
    """Return whether x is a complex tensor and the dtype of the computation is real."""
    return dtype is not None and is_tensor(a) and (
        convert_to_tensor(a).dtype.kind == "c" and np.dtype(dtype).kind == "f")


def summed(op, terms):
    """Sum a tensor of the input's shape, or a batch of them, over the reduced axes."""
    axis = op.attrs["axis"]
    if terms.ndim > op.input_specs[0].ndim:
        axis = axis_in_batch(axis, terms.ndim)
    return sum(terms, axis, keepdims=op.attrs["keepdims"])


# -- `where` and `initial` -------------------------------------------------------------------------


def filled(a, there, neutral):
    """Return a tensor with a neutral number where a mask is false."""
    return where_op(there, a, np.asarray(neutral, a.dtype))


def selected(a, where, neutral):
    """Return operands of a reduction, with a neutral number where `where` is false."""
    return filled(a, mask_for(a, where), neutral) if is_given(where) else a


def start(initial, dtype):
    """Return the `initial` of a reduction as a number, or tensor, of a dtype."""
    initial = np.asarray(initial, dtype) if type(initial) is int else as_operand(initial)
    if initial.shape not in ((), None):
        raise ValueError(f"initial must be a single number, got the shape {initial.shape}")
    if initial.dtype.kind == "c" and dtype.kind != "c":
        raise TypeError(f"initial must be real for a result of {dtype}, got {initial.dtype}")
    return initial if initial.dtype == dtype else astype(initial, dtype, copy=False)


def from_start(reduce, combine, neutral, a, initial, where):
    """Reduce the elements selected by `where`, and combine the result with `initial`."""
    if type(initial) is not int:
        a, initial = together(a, as_operand(initial) if is_given(initial) else None)
    result = reduce(selected(convert_to_tensor(a), where, neutral))
    return result if initial is None else combine(result, start(initial, result.dtype))


def n_there(a, axis, there):
    """Count the elements selected by a mask, keeping the axes."""
    ones = ones_like(a, wide(np.empty(0, a.dtype).real.dtype))
    return sum(filled(ones, there, 0), axis, keepdims=True)


def masked_mean(a, axis, n, there, dtype=None):
    """Return the mean of the `n` elements selected by a mask, keeping the axes."""
    if dtype is None:
        dtype = a.dtype if a.dtype.kind in "fc" else np.dtype(np.float64)
    total = sum(filled(a, there, 0), axis, wide(np.dtype(dtype)), keepdims=True)
    return astype(total / n, dtype, copy=False)


def warn_if(condition, message):
    """Warn if a condition on counts, an array or an eager tensor, holds anywhere."""
    if np.any(values_of(condition)):
        warn(message, RuntimeWarning)


def as_kept(x, axis, keepdims):
    """Drop the reduced axes unless `keepdims`."""
    if keepdims or not ndim(x):
        return x
    return squeeze(x, tuple(range(ndim(x))) if axis is None else axis)


# -- sum and mean ----------------------------------------------------------------------------------


# numpy.sum and numpy.mean without their wrappers, which dominate for small arrays.
def _sum(x, *, axis, dtype=None, keepdims=False, **options):
    if options or type(x) is not np.ndarray:
        return np.sum(x, axis=axis, dtype=dtype, keepdims=keepdims, **options)
    return np.add.reduce(x, axis=axis, dtype=dtype, keepdims=keepdims)


def _mean(x, *, axis, dtype=None, keepdims=False, **options):
    if type(x) is np.ndarray and not x.size:
        return warning_user(np.mean, x, axis=axis, dtype=dtype, keepdims=keepdims, **options)
    if (options or dtype or type(x) is not np.ndarray or x.dtype.char not in "fdFD"
            or not x.ndim or not isinstance(axis, (int, tuple, type(None)))):
        return np.mean(x, axis=axis, dtype=dtype, keepdims=keepdims, **options)
    total = np.add.reduce(x, axis=axis, keepdims=keepdims)
    return total / (x.size // total.size)


def _mean_by_sum(x, *, axis, dtype=None, keepdims=False, **options):
    """Sum and divide, for large arrays: plans can fuse the sum with the ops of its terms."""
    if options or dtype is not None or not is_large(x):
        return NotImplemented
    total = sum_op(x, axis=axis, dtype=None, keepdims=keepdims)
    return total / (x.size // total.size) if total.size else NotImplemented


sum_op = enter(
    SumOp("Sum", _sum, _expand, is_mean=False, shape_rule=shape_rules.reduction(np.sum))
).described(batch=batch_axis.along_axis)

# The mean of no elements has an empty gradient, for any divisor.
mean_op = enter(
    SumOp(
        "Mean", _mean, lambda op, g: _expand(op, g / n_reduced(op, at_least=1)), is_mean=True,
        shape_rule=shape_rules.reduction(np.mean),
    )
).described(batch=batch_axis.along_axis, composition=_mean_by_sum)  # fmt: skip


def sum(a, axis=None, dtype=None, out=None, keepdims=False, initial=_NoValue,
        where=_NoValue) -> Any:
    """Sum the elements over the given axes, as `numpy.sum`.

    Examples
    --------
    >>> import numpy as np
    >>> from cytape import grad
    >>> grad(np.sum)(np.array([1.0, 2.0]))
    array([1., 1.])
    """
    if out is not None:
        return with_out(
            np.sum, out, a, axis=axis, dtype=dtype, keepdims=keepdims, initial=initial, where=where)
    if initial is _NoValue and where is _NoValue:
        return sum_op(a, axis=axis, dtype=dtype, keepdims=keepdims)
    if is_tensor([a, initial, where]):
        # Not a lambda, which would make closure cells in each call of this function.
        return from_start(
            partial(sum_op, axis=axis, dtype=dtype, keepdims=keepdims), add, 0, a, initial, where)
    options = only_numpy("sum", [], initial=initial, where=where)
    return sum_op(a, axis=axis, dtype=dtype, keepdims=keepdims, **options)


def mean(a, axis=None, dtype=None, out=None, keepdims=False, *, where=_NoValue) -> Any:
    """Average over the given axes, as `numpy.mean`.

    Examples
    --------
    >>> import numpy as np
    >>> from cytape import grad
    >>> grad(np.mean)(np.array([1.0, 2.0]))
    array([0.5, 0.5])
    """
    if out is not None:
        return with_out(np.mean, out, a, axis=axis, dtype=dtype, keepdims=keepdims, where=where)
    if is_given(where):
        if not is_tensor([a, where]):
            return np.mean(a, axis, dtype, out, keepdims, where=where)
        a = convert_to_tensor(a)
        n = n_there(a, axis, there := mask_for(a, where))
        warn_if(n == 0, "Mean of empty slice")
        return as_kept(masked_mean(a, axis, n, there, dtype), axis, keepdims)
    return mean_op(a, axis=axis, dtype=dtype, keepdims=keepdims)


# -- extrema ---------------------------------------------------------------------------------------


_LARGE = 1 << 17  # bytes from which on a pass over memory costs more than a Python call


def is_large(x):
    """Return whether a tensor or spec is known to be so large that passes over it dominate."""
    return x.nbytes is not None and x.nbytes >= _LARGE


def given(g, x, y, axis, skip_nan=False, signed=False):
    """Return 1/k of the gradient for each of the k elements that equal the extremum, 0 for others.

    Elements are selected, not multiplied by 0, which would give NaN for infinite gradients. signed:
    elements whose magnitudes equal the extremum get their share times their sign.
    """
    if signed:
        return sign(x) * given(np.where(y == 0, 0, g), absolute(x), y, axis, skip_nan)
    chosen = x == y
    n = sum(astype(chosen, wide(x.dtype), copy=False), axis, keepdims=True)
    none = 0.0 if skip_nan else 0.0 * np.where(n > 0, n, np.nan)  # NaN if the extremum is
    return np.where(chosen, g / maximum(n, 1), none)  # division by NaN could warn


def _shared(x, *pairs, axis, skip_nan, signed=False):
    """Sum the shares of pairs of a gradient and an extremum."""
    total = None
    for g, y in zip(pairs[::2], pairs[1::2], strict=True):
        found = shared_among_ties(np.asarray(g), x, y, axis, skip_nan, total, signed)
        if found is None:
            found = given(g, x, y, axis, skip_nan, signed)
            found = found if total is None else total + found
        total = found
    return total


def _shared_vjp(op, g):
    x, *pairs = op.inputs
    return None, *[
        None if i % 2 else sum_to(given(g, x, pairs[i + 1], **op.attrs), op.input_specs[1 + i])
        for i in range(len(pairs))
    ]


def _shared_jvp(op, _, *tangents):
    x, *pairs = op.inputs
    terms = [given(t, x, y, **op.attrs)
             for t, y in zip(tangents[::2], pairs[1::2], strict=True)]
    return terms[0] if len(terms) == 1 else terms[0] + terms[1]


shared_op = general(
    "SharedAmongTies", _shared, _shared_vjp, _shared_jvp,
    shape_rule=lambda x, *_, **_attrs: x,
)  # fmt: skip


def share(op, skip_nan, *pairs, signed=False):
    """Divide the gradient of each of `pairs` equally among the elements that equal the extremum.

    Pairs of a gradient and an extremum, in the output's shape; signed: as for `given`.
    """
    x, options = op.inputs[0], {"axis": op.attrs["axis"], "skip_nan": skip_nan, "signed": signed}
    pairs = [kept(op, operand) for operand in pairs]
    if type(x) is np.ndarray or is_large(x) and x.dtype == wide(x.dtype) and not (
            signed and x.dtype.kind == "c"):
        return (_shared if type(x) is np.ndarray else shared_op)(x, *pairs, **options)
    terms = [given(g, x, y, **options) for g, y in zip(pairs[::2], pairs[1::2], strict=True)]
    return terms[0] if len(terms) == 1 else terms[0] + terms[1]


def share_one(op, skip_nan, g, signed=False):
    """Divide the gradient equally among the elements that equal the output."""
    x, y, shared = op.inputs[0], op.outputs[0], None
    if type(x) is np.ndarray:
        shared = shared_among_ties(g, x, y, op.attrs["axis"], skip_nan, None, signed)
    return share(op, skip_nan, g, y, signed=signed) if shared is None else shared


def extremum(name, forward, skip_nan=False, **facts):
    """Declare an extremum; with `skip_nan` the result NaN of an all-NaN slice has no gradient."""

    def vjp(op, g):
        return share_one(op, skip_nan, g)

    def jvp(op, t):
        return summed(
            op, given(t, op.inputs[0], kept(op, op.outputs[0]), op.attrs["axis"], skip_nan))

    return general(
        name,
        forward=forward,
        vjp=vjp,
        jvp=jvp,
        saved_outputs=(0,),
        batched=jvp,
        shape_rule=shape_rules.reduction(forward),
        batch=batch_axis.along_axis,
        **facts,
    )


def _lowest(dtype, sign):
    """Return the lowest or highest number of a dtype."""
    if dtype.kind == "b":
        return sign < 0
    if dtype.kind in "iu":
        return (np.iinfo(dtype).min, np.iinfo(dtype).max)[sign < 0]
    return complex(-sign * np.inf, -sign * np.inf) if dtype.kind == "c" else -sign * np.inf


def _from_start(op, combine, a, axis, keepdims, initial, where):
    """Return the extremum of `initial` and the elements selected by `where`."""
    a = convert_to_tensor(a)
    if is_given(where):
        mask_for(a, where)  # raises if it is not a mask
    if not is_given(initial):
        op.forward(np.zeros(1), where=np.ones(1, bool))  # raises NumPy's error
    if a.shape is not None and 0 in a.shape:  # no elements: the result is `initial`
        selected(a, where, 0)
        nothing = sum_op(a, axis=axis, dtype=a.dtype, keepdims=keepdims)
        return nothing + start(initial, a.dtype)
    neutral = _lowest(a.dtype, 1 if combine is maximum else -1)
    # With `initial`, NumPy accepts extrema of no elements.
    options = {} if a.spec.known else {"initial": neutral}
    return from_start(
        lambda a: op(a, axis=axis, keepdims=keepdims, **options), combine, neutral, a, initial,
        where)


# numpy.max and numpy.min without their wrappers, as above.
def _max(x, *, axis=None, keepdims=False, **options):
    if type(x) is not np.ndarray:
        return np.max(x, axis=axis, keepdims=keepdims, **options)
    return np.maximum.reduce(x, axis=axis, keepdims=keepdims, **options)


def _min(x, *, axis=None, keepdims=False, **options):
    if type(x) is not np.ndarray:
        return np.min(x, axis=axis, keepdims=keepdims, **options)
    return np.minimum.reduce(x, axis=axis, keepdims=keepdims, **options)


max_op = extremum("Max", _max, lowering="REDUCED", ufunc=np.maximum)
min_op = extremum("Min", _min, lowering="REDUCED", ufunc=np.minimum)


def _extremes_jvp(op, t):
    return tuple(
        summed(op, given(t, op.inputs[0], kept(op, y), op.attrs["axis"]))
        for y in op.outputs)


extremes_op = general(
    "Extremes",
    forward=lambda x, **options: (np.max(x, **options), np.min(x, **options)),
    vjp=lambda op, of_max, of_min: share(op, False, of_max, op.outputs[0], of_min, op.outputs[1]),
    jvp=_extremes_jvp,
    saved_outputs=(0, 1),
    batched=_extremes_jvp,
    shape_rule=lambda x, **attrs: (shape_rules.reduction(np.max)(x, **attrs),) * 2,
    batch=batch_axis.along_axis,
)


def max(a, axis=None, out=None, keepdims=False, initial=_NoValue, where=_NoValue) -> Any:
    """Return the maximum over the given axes, as `numpy.max`; elements that tie share the gradient.

    Examples
    --------
    >>> import numpy as np
    >>> from cytape import grad
    >>> grad(np.max)(np.array([1.0, 3.0, 3.0]))
    array([0. , 0.5, 0.5])
    """
    if out is None and initial is where is _NoValue:
        return max_op(a, axis=axis, keepdims=keepdims)
    return _extremes(np.max, max_op, maximum, a, axis, out, keepdims, initial, where)


def min(a, axis=None, out=None, keepdims=False, initial=_NoValue, where=_NoValue) -> Any:
    """Return the minimum over the given axes, as `numpy.min`; elements that tie share the gradient.

    Examples
    --------
    >>> import numpy as np
    >>> from cytape import grad
    >>> grad(np.min)(np.array([1.0, 3.0, 1.0]))
    array([0.5, 0. , 0.5])
    """
    if out is None and initial is where is _NoValue:
        return min_op(a, axis=axis, keepdims=keepdims)
    return _extremes(np.min, min_op, minimum, a, axis, out, keepdims, initial, where)


def _extremes(theirs, op, ufunc, a, axis, out, keepdims, initial, where):
    if out is not None:
        return with_out(theirs, out, a, axis=axis, keepdims=keepdims, initial=initial, where=where)
    where = _NoValue if where is True else where
    if (is_given(initial) or is_given(where)) and is_tensor([a, initial, where]):
        return _from_start(op, ufunc, a, axis, keepdims, initial, where)
    options = only_numpy(theirs.__name__, [a], initial=initial, where=where)
    return op(a, axis=axis, keepdims=keepdims, **options)


amax, amin = max, min
