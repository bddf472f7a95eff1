"""Reductions that skip NaN: `nansum`, `nanmax`, `nanmean` and others.

NaN is replaced by a neutral number, which gets no gradient, before the reduction of the same name;
derivatives at ties and zeros are those of that reduction. A slice of NaN only has NumPy's result
and no gradient.
"""

from typing import Any

import numpy as np

from cytape.ops import cumulative, reductions
from cytape.ops.calls.operands import is_given, keeps_axes, mask_for, values_of, wide
from cytape.ops.comparisons import isnan, logical_not
from cytape.ops.creation import astype
from cytape.ops.elementwise import real
from cytape.ops.elementwise import where as elementwise_where
from cytape.ops.engine.numpy_wrapper import numpy_function
from cytape.ops.reductions import (
    as_kept,
    extremum,
    filled,
    masked_mean,
    n_there,
    warn_if,
)
from cytape.ops.variance import ddof_of, masked_squares, root_of_variance
from cytape.tensor import convert_to_tensor
from cytape.tensor.values.user_warnings import warn

__all__ = [
    "nancumprod", "nancumsum", "nanmax", "nanmean", "nanmin", "nanprod", "nanstd", "nansum",
    "nanvar",
]  # fmt: skip

_NoValue = np._NoValue


def _there(a, given):
    """Return the mask of elements: not NaN, and selected by the argument `where`."""
    there = logical_not(isnan(a))
    return there & mask_for(a, given) if is_given(given) else there


@numpy_function(np.nansum, "a", "initial", "where")
def nansum(a, axis=None, dtype=None, out=None, keepdims=_NoValue, initial=_NoValue,
           where=_NoValue) -> Any:
    """Sum what is not NaN, as `numpy.nansum`.

    Examples
    --------
    >>> from cytape import grad
    >>> grad(np.nansum)(np.array([1.0, np.nan]))
    array([1., 0.])
    """
    a = convert_to_tensor(a)
    return reductions.sum(a, axis, dtype, None, keeps_axes(keepdims), initial, _there(a, where))


@numpy_function(np.nanprod, "a", "initial", "where")
def nanprod(a, axis=None, dtype=None, out=None, keepdims=_NoValue, initial=_NoValue,
            where=_NoValue) -> Any:
    """Multiply what is not NaN, as `numpy.nanprod`.

    Examples
    --------
    >>> from cytape import grad
    >>> grad(np.nanprod)(np.array([2.0, np.nan, 3.0]))
    array([3., 0., 2.])
    """
    a = convert_to_tensor(a)
    return cumulative.prod(a, axis, dtype, None, keeps_axes(keepdims), initial, _there(a, where))


@numpy_function(np.nancumsum)
def nancumsum(a, axis=None, dtype=None, out=None) -> Any:
    """Return the cumulative sum with NaN as 0, as `numpy.nancumsum`.

    Examples
    --------
    >>> from cytape import grad
    >>> grad(lambda x: np.nancumsum(x)[-1])(np.array([1.0, np.nan]))
    array([1., 0.])
    """
    return cumulative.cumsum(filled(a := convert_to_tensor(a), _there(a, None), 0), axis, dtype)


@numpy_function(np.nancumprod)
def nancumprod(a, axis=None, dtype=None, out=None) -> Any:
    """Return the cumulative product with NaN as 1, as `numpy.nancumprod`.

    Examples
    --------
    >>> from cytape import grad
    >>> grad(lambda x: np.nancumprod(x)[-1])(np.array([2.0, np.nan, 3.0]))
    array([3., 0., 2.])
    """
    return cumulative.cumprod(filled(a := convert_to_tensor(a), _there(a, None), 1), axis, dtype)


def _nan_extremum(name, reduce, ufunc):
    theirs = getattr(np, name)

    def forward(x, *, axis, keepdims):
        return ufunc.reduce(x, axis=axis, keepdims=keepdims)

    op = extremum("Nan" + name[3:].capitalize(), forward, skip_nan=True)

    def function(a, axis=None, out=None, keepdims=_NoValue, initial=_NoValue, where=_NoValue):
        a = convert_to_tensor(a)
        keepdims = keeps_axes(keepdims)
        if is_given(initial):
            return reduce(a, axis, None, keepdims, initial, _there(a, where))
        if is_given(where) and where is not True:
            mask_for(a, where)  # raises if it is not a mask
            theirs(np.zeros(1), where=[True])  # raises NumPy's error
        if a.dtype.kind not in "fc":
            return reduce(a, axis, keepdims=keepdims)
        result = op(a, axis=axis, keepdims=keepdims)
        values = values_of(result)
        if values is not None and np.isnan(values).any():
            warn("All-NaN slice encountered", RuntimeWarning)
        return result

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""Return the {name[3:]}imum of what is not NaN, as `numpy.{name}`.

    Examples
    --------
    >>> from cytape import grad
    >>> grad(np.{name})(np.array([1.0, np.nan, 1.0]))
    array([0.5, 0. , 0.5])
    """
    return numpy_function(theirs, "a", "initial", "where")(function)


nanmax = _nan_extremum("nanmax", reductions.max, np.fmax)
nanmin = _nan_extremum("nanmin", reductions.min, np.fmin)


# -- averages --------------------------------------------------------------------------------------


@numpy_function(np.nanmean, "a", "where")
def nanmean(a, axis=None, dtype=None, out=None, keepdims=_NoValue, *, where=_NoValue) -> Any:
    """Average what is not NaN, as `numpy.nanmean`.

    Examples
    --------
    >>> from cytape import grad
    >>> grad(np.nanmean)(np.array([1.0, np.nan, 3.0]))
    array([0.5, 0. , 0.5])
    """
    a = convert_to_tensor(a)
    if a.dtype.kind not in "fc":
        return reductions.mean(a, axis, dtype, keepdims=keeps_axes(keepdims), where=where)
    _require_inexact(dtype)
    n = n_there(a, axis, there := _there(a, where))
    warn_if(n == 0, "Mean of empty slice")
    mean = masked_mean(a, axis, elementwise_where(n == 0, np.nan, n), there, dtype)
    return as_kept(mean, axis, keeps_axes(keepdims))


def _nan_spread(of_variance, a, axis, dtype, ddof, keepdims, given, mean, correction):
    """Return a function of the variance of what is not NaN."""
    _require_inexact(dtype)
    ddof = ddof_of(ddof, correction)
    a = convert_to_tensor(a)
    a = a if a.dtype.kind in "fc" else astype(a, np.float64)
    result = np.empty(0, a.dtype).real.dtype if dtype is None else np.dtype(dtype)
    a, cut = astype(a, wide(a.dtype), copy=False), reductions.loses_imaginary(a, dtype)
    n = n_there(a, axis, there := _there(a, given))
    warn_if(n <= ddof, "Degrees of freedom <= 0 for slice.")
    if mean is _NoValue:
        mean = masked_mean(
            real(a) if cut else a, axis, elementwise_where(n == 0, np.nan, n), there)
    total = masked_squares(a, axis, there, mean)
    found = of_variance(total / elementwise_where(n <= ddof, np.nan, n - ddof))
    return astype(as_kept(found, axis, keeps_axes(keepdims)), result, copy=False)


def _require_inexact(dtype):
    if dtype is not None and np.dtype(dtype).kind not in "fc":
        np.nanmean(np.ones(1), dtype=dtype)  # raises NumPy's error


@numpy_function(np.nanvar, "a", "where", "mean")
def nanvar(a, axis=None, dtype=None, out=None, ddof=0, keepdims=_NoValue, *, where=_NoValue,
           mean=_NoValue, correction=_NoValue) -> Any:
    """Return the variance of what is not NaN, as `numpy.nanvar`.

    Examples
    --------
    >>> from cytape import grad
    >>> grad(np.nanvar)(np.array([1.0, np.nan, 3.0]))
    array([-1.,  0.,  1.])
    """
    return _nan_spread(
        lambda variance: variance, a, axis, dtype, ddof, keepdims, where, mean, correction)


@numpy_function(np.nanstd, "a", "where", "mean")
def nanstd(a, axis=None, dtype=None, out=None, ddof=0, keepdims=_NoValue, *, where=_NoValue,
           mean=_NoValue, correction=_NoValue) -> Any:
    """Return the standard deviation of what is not NaN, as `numpy.nanstd`.

    Its gradient is 0 where it is 0.

    Examples
    --------
    >>> from cytape import grad
    >>> grad(np.nanstd)(np.array([1.0, np.nan, 3.0]))
    array([-0.5,  0. ,  0.5])
    """
    return _nan_spread(
        root_of_variance, a, axis, dtype, ddof, keepdims, where, mean, correction)
