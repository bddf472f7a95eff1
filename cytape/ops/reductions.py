"""Reductions: sum, mean, extrema, variance, counts and truth values; `products` has the others.

Where a derivative is not unique, these values are taken:

- `max` and `min`: elements that tie share the gradient equally (TensorFlow's and JAX's choice);
- `std` of elements that are all equal: 0, where the formula would give NaN. What counts is that
  they are equal, not whether NumPy's `std` is 0: the rounding of the mean may keep it from that.

Half precision is widened to single precision where elements are counted or many of them summed.
"""

import math

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple

from cytape.ops.creation import astype, stop_gradient_op
from cytape.ops.elementwise import conj, maximum, real, sqrt, where
from cytape.ops.engine.arguments import axis_in_batch, only_numpy, wide
from cytape.ops.engine.declare import enter, general, nondifferentiable
from cytape.ops.engine.sum_op import SumOp
from cytape.ops.shapes import shape_rules
from cytape.ops.shaping import (
    broadcast_to,
    expand_dims,
    reshape,
)
from cytape.ops.shared.conform import count, countable

__all__ = [
    "all",
    "amax",
    "amin",
    "any",
    "argmax",
    "argmin",
    "count_nonzero",
    "max",
    "mean",
    "min",
    "std",
    "sum",
    "var",
]

_NoValue = np._NoValue


def reduced_axes(op):
    """Return the axes that `op` reduces, as a tuple of non-negative integers."""
    axis, ndim = op.attrs["axis"], op.input_specs[0].ndim
    if axis is None or ndim == 0:  # NumPy lets a 0-d array have an axis 0
        return tuple(range(ndim))
    if ndim < 0:  # it is not known
        return axis if isinstance(axis, tuple) else (axis,)
    return normalize_axis_tuple(axis, ndim)


def _count(op, at_least=0):
    """Return how many elements go into one element of the output; a tensor if it is not known."""
    spec = op.input_specs[0]
    if not spec.known:
        return count(spec, None if op.attrs["axis"] is None else reduced_axes(op), at_least)
    n = math.prod(spec.shape[axis] for axis in reduced_axes(op))
    return countable(n or at_least, spec.dtype)


def kept(op, reduced):
    """Give what has the output's shape one that broadcasts against the input."""
    if op.attrs["keepdims"] or op.attrs["axis"] is None:
        return reduced
    axes = reduced_axes(op)
    if not op.input_specs[0].known:
        return expand_dims(reduced, axes)
    shape = op.input_specs[0].shape
    return reshape(reduced, tuple(1 if i in axes else n for i, n in enumerate(shape)))


def _expand(op, reduced):
    """Repeat along the reduced axes, to the input's shape."""
    return broadcast_to(kept(op, reduced), op.input_specs[0].extents)


def operand(op):
    """Return the input in the result's precision, at least in single precision."""
    x = op.inputs[0]
    dtype = wide(np.result_type(x.dtype, op.output_specs[0].dtype))
    return x if x.dtype == dtype else astype(x, dtype)


def _inner(op, a, b):
    """Sum `a * b`, or where complex the real part of `conj(a) * b`, over the reduced axes."""
    return summed(op, real(conj(a) * b) if a.dtype.kind == "c" else a * b)


def summed(op, terms):
    """Sum over the reduced axes what has the input's shape, or is a batch of that."""
    axis = op.attrs["axis"]
    if terms.ndim > op.input_specs[0].ndim:
        axis = axis_in_batch(axis, terms.ndim)
    return sum(terms, axis, keepdims=op.attrs["keepdims"])


# -- sum and mean ----------------------------------------------------------------------------------


# What numpy.sum and numpy.mean do, less the wrappers that a small array spends most time in.
def _sum(x, *, axis, dtype=None, keepdims=False, **options):
    if options or type(x) is not np.ndarray:
        return np.sum(x, axis=axis, dtype=dtype, keepdims=keepdims, **options)
    return np.add.reduce(x, axis=axis, dtype=dtype, keepdims=keepdims)


def _mean(x, *, axis, dtype=None, keepdims=False, **options):
    if (options or dtype or type(x) is not np.ndarray or x.dtype.char not in "fdFD" or not x.size
            or not x.ndim or not isinstance(axis, (int, tuple, type(None)))):
        return np.mean(x, axis=axis, dtype=dtype, keepdims=keepdims, **options)
    total = np.add.reduce(x, axis=axis, keepdims=keepdims)
    return total / (x.size // total.size)


def _sum_batch(x, *, axis, **options):
    return sum(x, axis_in_batch(axis, x.ndim), **options)


def _mean_batch(x, *, axis, **options):
    return mean(x, axis_in_batch(axis, x.ndim), **options)


sum_op = enter(
    SumOp(
        "Sum", _sum, _expand, is_mean=False, batched=_sum_batch,
        shape_rule=shape_rules.reduction(np.sum),
    )
)  # fmt: skip

# The mean of nothing has an empty gradient; any divisor will do for it.
mean_op = enter(
    SumOp(
        "Mean", _mean, lambda op, g: _expand(op, g / _count(op, at_least=1)), is_mean=True,
        batched=_mean_batch, shape_rule=shape_rules.reduction(np.mean),
    )
)  # fmt: skip


def sum(a, axis=None, dtype=None, out=None, keepdims=False, initial=_NoValue, where=_NoValue):
    """Sum the elements over the given axes, as `numpy.sum`.

    Examples
    --------
    >>> from cytape import grad
    >>> grad(np.sum)(np.array([1.0, 2.0]))
    array([1., 1.])
    """
    if out is None and initial is _NoValue and where is _NoValue:
        return sum_op(a, axis=axis, dtype=dtype, keepdims=keepdims)
    options = only_numpy("sum", [a], out=out, initial=initial, where=where)
    return sum_op(a, axis=axis, dtype=dtype, keepdims=keepdims, **options)


def mean(a, axis=None, dtype=None, out=None, keepdims=False, *, where=_NoValue):
    """Average over the given axes, as `numpy.mean`.

    Examples
    --------
    >>> from cytape import grad
    >>> grad(np.mean)(np.array([1.0, 2.0]))
    array([0.5, 0.5])
    """
    options = only_numpy("mean", [a], out=out, where=where)
    return mean_op(a, axis=axis, dtype=dtype, keepdims=keepdims, **options)


# -- extrema ---------------------------------------------------------------------------------------


def _shares(op):
    """Return 1/k at each of the k elements that equal the extremum, 0 at all others."""
    x = op.inputs[0]
    chosen = astype(x == kept(op, op.outputs[0]), wide(x.dtype))
    return chosen / sum(chosen, op.attrs["axis"], keepdims=True)


def _extremum_jvp(op, t):
    return summed(op, t * _shares(op))


def _extremum(name, forward):
    return general(
        name,
        forward=forward,
        vjp=lambda op, g: kept(op, g) * _shares(op),
        jvp=_extremum_jvp,
        saved_outputs=(0,),
        batched=_extremum_jvp,
        shape_rule=shape_rules.reduction(forward),
    )


max_op = _extremum("Max", np.max)
min_op = _extremum("Min", np.min)


def max(a, axis=None, out=None, keepdims=False, initial=_NoValue, where=_NoValue):
    """Return the maximum over the given axes, as `numpy.max`; elements that tie share the gradient.

    Examples
    --------
    >>> from cytape import grad
    >>> grad(np.max)(np.array([1.0, 3.0, 3.0]))
    array([0. , 0.5, 0.5])
    """
    options = only_numpy("max", [a], out=out, initial=initial, where=where)
    return max_op(a, axis=axis, keepdims=keepdims, **options)


def min(a, axis=None, out=None, keepdims=False, initial=_NoValue, where=_NoValue):
    """Return the minimum over the given axes, as `numpy.min`; elements that tie share the gradient.

    Examples
    --------
    >>> from cytape import grad
    >>> grad(np.min)(np.array([1.0, 3.0, 1.0]))
    array([0.5, 0. , 0.5])
    """
    options = only_numpy("min", [a], out=out, initial=initial, where=where)
    return min_op(a, axis=axis, keepdims=keepdims, **options)


amax, amin = max, min


# -- variance and standard deviation ---------------------------------------------------------------


def _deviations(op):
    """Return the input less its mean: exactly 0 where all elements are equal.

    Whatever constant is subtracted first makes no difference, but for rounding. Less the first one,
    equal elements are zeros, and close ones have exact differences.
    """
    x = operand(op)
    axes = reduced_axes(op)
    first = x[tuple([slice(0, 1) if i in axes else slice(None) for i in range(x.ndim)])]
    x = x - stop_gradient_op(first)
    return x - mean(x, op.attrs["axis"], keepdims=True)


def _degrees_of_freedom(op):
    freedom = _count(op) - op.attrs["ddof"]
    if not op.input_specs[0].known:
        return maximum(freedom, 0)
    return freedom if freedom > 0 else 0


def _std_partials(op):
    """Return the partial derivative of `std` in each element: that of a norm of the deviations."""
    deviations = _deviations(op)
    squares = real(conj(deviations) * deviations) if op.inputs[0].dtype.kind == "c" else (
        deviations * deviations
    )  # fmt: skip
    square, freedom = sum(squares, op.attrs["axis"], keepdims=True), _degrees_of_freedom(op)
    # Division by infinity makes derivatives of every order 0, where they would be NaN.
    return deviations / (sqrt(where(square == 0, np.inf, square / freedom)) * freedom)


def _var_vjp(op, g):
    if op.input_specs[0].ndim < 0:
        return NotImplemented
    return kept(op, 2 * g / _degrees_of_freedom(op)) * _deviations(op)


def _var_jvp(op, t):
    if op.input_specs[0].ndim < 0:
        return NotImplemented
    return 2 * _inner(op, _deviations(op), t) / _degrees_of_freedom(op)


def _std_vjp(op, g):
    if op.input_specs[0].ndim < 0:
        return NotImplemented
    return kept(op, g) * _std_partials(op)


def _std_jvp(op, t):
    if op.input_specs[0].ndim < 0:
        return NotImplemented
    return _inner(op, _std_partials(op), t)


var_op = general(
    "Var",
    forward=np.var,
    vjp=_var_vjp,
    jvp=_var_jvp,
    batched=_var_jvp,
    shape_rule=shape_rules.spread,
)

std_op = general(
    "Std",
    forward=np.std,
    vjp=_std_vjp,
    jvp=_std_jvp,
    batched=_std_jvp,
    shape_rule=shape_rules.spread,
)


def _ddof(ddof, correction):
    """Return `ddof`, which the array API calls `correction`."""
    if correction is _NoValue:
        return ddof
    if ddof != 0:
        raise ValueError("ddof and correction can't be provided simultaneously.")
    return correction


def var(
    a,
    axis=None,
    dtype=None,
    out=None,
    ddof=0,
    keepdims=False,
    *,
    where=_NoValue,
    mean=_NoValue,
    correction=_NoValue,
):
    """Return the variance over the given axes, as `numpy.var`; it is real for complex input.

    Examples
    --------
    >>> from cytape import grad
    >>> grad(np.var)(np.array([1.0, 3.0]))
    array([-1.,  1.])
    """
    options = only_numpy("var", [a], out=out, where=where, mean=mean)
    ddof = _ddof(ddof, correction)
    return var_op(a, axis=axis, dtype=dtype, ddof=ddof, keepdims=keepdims, **options)


def std(
    a,
    axis=None,
    dtype=None,
    out=None,
    ddof=0,
    keepdims=False,
    *,
    where=_NoValue,
    mean=_NoValue,
    correction=_NoValue,
):
    """Return the standard deviation, as `numpy.std`; where it is 0, so is its gradient.

    Examples
    --------
    >>> from cytape import grad
    >>> grad(np.std)(np.array([1.0, 3.0]))
    array([-0.5,  0.5])
    >>> grad(np.std)(np.array([2.0, 2.0]))
    array([0., 0.])
    """
    options = only_numpy("std", [a], out=out, where=where, mean=mean)
    ddof = _ddof(ddof, correction)
    return std_op(a, axis=axis, dtype=dtype, ddof=ddof, keepdims=keepdims, **options)


# -- reductions to integers and truth values: nothing to differentiate -----------------------------

argmax_op = nondifferentiable(
    "ArgMax", forward=np.argmax, shape_rule=shape_rules.to_integers
)
argmin_op = nondifferentiable(
    "ArgMin", forward=np.argmin, shape_rule=shape_rules.to_integers
)
all_op = nondifferentiable("All", forward=np.all, shape_rule=shape_rules.to_truth)
any_op = nondifferentiable("Any", forward=np.any, shape_rule=shape_rules.to_truth)
count_nonzero_op = nondifferentiable(
    "CountNonzero", forward=np.count_nonzero, shape_rule=shape_rules.to_integers
)


def argmax(a, axis=None, out=None, *, keepdims=False):
    """Return the index of the first maximum, as `numpy.argmax`.

    Examples
    --------
    >>> import cytape
    >>> int(np.argmax(cytape.constant([1.0, 3.0, 2.0])))
    1
    """
    options = only_numpy("argmax", [a], out=out)
    return argmax_op(a, axis=axis, keepdims=keepdims, **options)


def argmin(a, axis=None, out=None, *, keepdims=False):
    """Return the index of the first minimum, as `numpy.argmin`.

    Examples
    --------
    >>> import cytape
    >>> int(np.argmin(cytape.constant([2.0, 1.0, 3.0])))
    1
    """
    options = only_numpy("argmin", [a], out=out)
    return argmin_op(a, axis=axis, keepdims=keepdims, **options)


def all(a, axis=None, out=None, keepdims=False, *, where=_NoValue):
    """Return whether all elements are true, as `numpy.all`.

    Examples
    --------
    >>> import cytape
    >>> bool(np.all(cytape.constant([1.0, 0.0])))
    False
    """
    options = only_numpy("all", [a], out=out, where=where)
    return all_op(a, axis=axis, keepdims=keepdims, **options)


def any(a, axis=None, out=None, keepdims=False, *, where=_NoValue):
    """Return whether any element is true, as `numpy.any`.

    Examples
    --------
    >>> import cytape
    >>> bool(np.any(cytape.constant([1.0, 0.0])))
    True
    """
    options = only_numpy("any", [a], out=out, where=where)
    return any_op(a, axis=axis, keepdims=keepdims, **options)


def count_nonzero(a, axis=None, *, keepdims=False):
    """Count the elements that are not zero, as `numpy.count_nonzero`.

    Examples
    --------
    >>> import cytape
    >>> int(np.count_nonzero(cytape.constant([1.0, 0.0, 2.0])))
    2
    """
    return count_nonzero_op(a, axis=axis, keepdims=keepdims)


NUMPY_FUNCTIONS = {
    np.all: all,
    np.amax: amax,
    np.amin: amin,
    np.any: any,
    np.argmax: argmax,
    np.argmin: argmin,
    np.count_nonzero: count_nonzero,
    np.max: max,
    np.mean: mean,
    np.min: min,
    np.std: std,
    np.sum: sum,
    np.var: var,
}
