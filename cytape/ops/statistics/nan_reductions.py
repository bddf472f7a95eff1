"""Reductions that skip NaN: what is skipped has no gradient.

They are the reductions of what has a neutral number in the place of each NaN, so that ties and
zeros are as in those. A slice of nothing but NaN has NumPy's result, and no gradient.
"""

import warnings

import numpy as np

from cytape.ops import products, reductions
from cytape.ops.creation import astype
from cytape.ops.elementwise import conj, maximum, minimum, real, sqrt, where
from cytape.ops.engine.arguments import is_tensor, keeps_axes, only_numpy, values_of, wide
from cytape.ops.shaping import ndim, squeeze
from cytape.ops.steps import isnan, logical_not
from cytape.tensor import convert_to_tensor

__all__ = [
    "nancumprod", "nancumsum", "nanmax", "nanmean", "nanmin", "nanprod", "nanstd", "nansum",
    "nanvar",
]  # fmt: skip

_NoValue = np._NoValue


def _left_out(a, given):
    """Return where elements are left out: NaN, and what the argument `where` does not name."""
    left_out = isnan(a)
    return left_out if given is _NoValue else left_out | logical_not(given)


def _filled(a, neutral, given=_NoValue):
    return where(_left_out(a, given), np.asarray(neutral, a.dtype), a)


def _is_given(value):
    return value is not None and value is not _NoValue


def nansum(a, axis=None, dtype=None, out=None, keepdims=_NoValue, initial=_NoValue,
           where=_NoValue):
    """Sum what is not NaN, as `numpy.nansum`.

    Examples
    --------
    >>> from cytape import grad
    >>> grad(np.nansum)(np.array([1.0, np.nan]))
    array([1., 0.])
    """
    if not is_tensor(a):
        return np.nansum(a, axis, dtype, out, keepdims, initial, where)
    only_numpy("nansum", [a], out=out)
    total = reductions.sum(
        _filled(convert_to_tensor(a), 0, where), axis, dtype, keepdims=keeps_axes(keepdims))
    return total + initial if _is_given(initial) else total


def nanprod(a, axis=None, dtype=None, out=None, keepdims=_NoValue, initial=_NoValue,
            where=_NoValue):
    """Multiply what is not NaN, as `numpy.nanprod`.

    Examples
    --------
    >>> from cytape import grad
    >>> grad(np.nanprod)(np.array([2.0, np.nan, 3.0]))
    array([3., 0., 2.])
    """
    if not is_tensor(a):
        return np.nanprod(a, axis, dtype, out, keepdims, initial, where)
    only_numpy("nanprod", [a], out=out)
    product = products.prod(
        _filled(convert_to_tensor(a), 1, where), axis, dtype, keepdims=keeps_axes(keepdims))
    return product * initial if _is_given(initial) else product


def nancumsum(a, axis=None, dtype=None, out=None):
    """Return the cumulative sum with NaN as 0, as `numpy.nancumsum`.

    Examples
    --------
    >>> from cytape import grad
    >>> grad(lambda x: np.nancumsum(x)[-1])(np.array([1.0, np.nan]))
    array([1., 0.])
    """
    if not is_tensor(a):
        return np.nancumsum(a, axis, dtype, out)
    only_numpy("nancumsum", [a], out=out)
    return products.cumsum(_filled(convert_to_tensor(a), 0), axis, dtype)


def nancumprod(a, axis=None, dtype=None, out=None):
    """Return the cumulative product with NaN as 1, as `numpy.nancumprod`.

    Examples
    --------
    >>> from cytape import grad
    >>> grad(lambda x: np.nancumprod(x)[-1])(np.array([2.0, np.nan, 3.0]))
    array([3., 0., 2.])
    """
    if not is_tensor(a):
        return np.nancumprod(a, axis, dtype, out)
    only_numpy("nancumprod", [a], out=out)
    return products.cumprod(_filled(convert_to_tensor(a), 1), axis, dtype)


def _nan_extremum(name, reduce, combine, neutral):
    numpy_function = getattr(np, name)

    def function(a, axis=None, out=None, keepdims=_NoValue, initial=_NoValue, where=_NoValue):
        if not is_tensor(a):
            return numpy_function(a, axis, out, keepdims, initial, where)
        only_numpy(name, [a], out=out)
        a = convert_to_tensor(a)
        if a.dtype.kind not in "fc":
            result = reduce(a, axis, keepdims=keeps_axes(keepdims))
            return combine(result, initial) if _is_given(initial) else result
        if where is not _NoValue and not _is_given(initial):
            numpy_function(np.zeros(1), where=[True])  # raises NumPy's error
        left_out = _left_out(a, where)
        result = reduce(_filled(a, neutral, where), axis, keepdims=keeps_axes(keepdims))
        if _is_given(initial):
            return combine(result, initial)
        nothing = reductions.all(left_out, axis, keepdims=keeps_axes(keepdims))
        if np.any(values_of(nothing)):
            warnings.warn("All-NaN slice encountered", RuntimeWarning, stacklevel=2)
        return elementwise_where(nothing, np.asarray(np.nan, a.dtype), result)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""Return the {name[3:]}imum of what is not NaN, as `numpy.{name}`.

    Examples
    --------
    >>> from cytape import grad
    >>> grad(np.{name})(np.array([1.0, np.nan, 1.0]))
    array([0.5, 0. , 0.5])
    """
    return function


elementwise_where = where
nanmax = _nan_extremum("nanmax", reductions.max, maximum, -np.inf)
nanmin = _nan_extremum("nanmin", reductions.min, minimum, np.inf)


# -- averages --------------------------------------------------------------------------------------


def _count(a, axis, given):
    """Count what is not left out, keeping the axes."""
    there = logical_not(_left_out(a, given))
    return reductions.sum(astype(there, wide(np.empty(0, a.dtype).real.dtype)), axis,
                          keepdims=True)


def _squeezed(x, axis, keepdims):
    if keeps_axes(keepdims):
        return x
    return squeeze(x, tuple(range(ndim(x))) if axis is None else axis) if ndim(x) else x


def _warn_if(condition, message):
    if np.any(values_of(condition)):
        warnings.warn(message, RuntimeWarning, stacklevel=3)


def _mean(a, axis, count, given):
    """Return the mean of what is not left out, with the axes kept; NaN where that is nothing."""
    total = reductions.sum(_filled(a, 0, given), axis, wide(a.dtype), keepdims=True)
    return total / where(count == 0, np.nan, count)


def nanmean(a, axis=None, dtype=None, out=None, keepdims=_NoValue, *, where=_NoValue):
    """Average what is not NaN, as `numpy.nanmean`.

    Examples
    --------
    >>> from cytape import grad
    >>> grad(np.nanmean)(np.array([1.0, np.nan, 3.0]))
    array([0.5, 0. , 0.5])
    """
    if not is_tensor(a):
        return np.nanmean(a, axis, dtype, out, keepdims, where=where)
    only_numpy("nanmean", [a], out=out)
    a = convert_to_tensor(a)
    if a.dtype.kind not in "fc":
        options = {} if where is _NoValue else {"where": where}
        return reductions.mean(a, axis, dtype, keepdims=keeps_axes(keepdims), **options)
    given = a.dtype if dtype is None else np.dtype(dtype)
    a = astype(a, given)
    count = _count(a, axis, where)
    _warn_if(count == 0, "Mean of empty slice")
    return astype(_squeezed(_mean(a, axis, count, where), axis, keepdims), given)


def _nan_variance(name, a, axis, dtype, out, ddof, keepdims, given, mean, correction):
    """Return the variance, with the axes kept."""
    only_numpy(name, [a], out=out)
    if correction is not _NoValue:
        if ddof != 0:
            raise ValueError("ddof and correction can't be provided simultaneously.")
        ddof = correction
    count = _count(a, axis, given)
    _warn_if(count <= ddof, "Degrees of freedom <= 0 for slice.")
    if mean is _NoValue:
        mean = _mean(a, axis, count, given)
    deviations = where(_left_out(a, given), 0, a - mean)
    squares = deviations * deviations
    if a.dtype.kind == "c":
        squares = real(conj(deviations) * deviations)
    freedom = count - ddof
    total = reductions.sum(squares, axis, wide(squares.dtype), keepdims=True)
    return total / where(freedom <= 0, np.nan, freedom)


def _real_dtype(a, dtype):
    return np.empty(0, a.dtype if dtype is None else dtype).real.dtype


def nanvar(a, axis=None, dtype=None, out=None, ddof=0, keepdims=_NoValue, *, where=_NoValue,
           mean=_NoValue, correction=_NoValue):
    """Return the variance of what is not NaN, as `numpy.nanvar`.

    Examples
    --------
    >>> from cytape import grad
    >>> grad(np.nanvar)(np.array([1.0, np.nan, 3.0]))
    array([-1.,  0.,  1.])
    """
    if not is_tensor(a):
        return np.nanvar(a, axis, dtype, out, ddof, keepdims, where=where, mean=mean,
                         correction=correction)
    a = convert_to_tensor(a)
    if a.dtype.kind not in "fc":
        a = astype(a, np.float64)
    dtype = _real_dtype(a, dtype)
    variance = _nan_variance(
        "nanvar", a, axis, dtype, out, ddof, keepdims, where, mean, correction)
    return astype(_squeezed(variance, axis, keepdims), dtype)


def nanstd(a, axis=None, dtype=None, out=None, ddof=0, keepdims=_NoValue, *, where=_NoValue,
           mean=_NoValue, correction=_NoValue):
    """Return the standard deviation of what is not NaN, as `numpy.nanstd`.

    Where it is 0, so is its gradient.

    Examples
    --------
    >>> from cytape import grad
    >>> grad(np.nanstd)(np.array([1.0, np.nan, 3.0]))
    array([-0.5,  0. ,  0.5])
    """
    if not is_tensor(a):
        return np.nanstd(a, axis, dtype, out, ddof, keepdims, where=where, mean=mean,
                         correction=correction)
    a = convert_to_tensor(a)
    if a.dtype.kind not in "fc":
        a = astype(a, np.float64)
    dtype = _real_dtype(a, dtype)
    variance = _nan_variance(
        "nanstd", a, axis, dtype, out, ddof, keepdims, where, mean, correction)
    nothing = variance == 0
    deviation = elementwise_where(nothing, 0, sqrt(elementwise_where(nothing, 1, variance)))
    return astype(_squeezed(deviation, axis, keepdims), dtype)
