"""Summaries of samples within limits and of ordered samples, and k-statistics."""

import math
from typing import Any

import numpy as np
import scipy.stats as stats

from cytape.ops.calls.operands import is_tensor, joined
from cytape.ops.elementwise import abs, log, where
from cytape.scipy.stats.summaries import count_of, kurtosis, power_of, skew, summary_of

__all__ = [
    "describe", "differential_entropy", "iqr", "kstat", "kstatvar", "median_abs_deviation", "tmax",
    "tmean", "tmin", "trim_mean", "tsem", "tstd", "tvar"]

# ---- limits


def _is_within(a, limits, inclusive):
    low, high = (None, None) if limits is None else limits
    is_within = np.ones_like(a, bool)
    if low is not None:
        is_within = is_within & (a >= low if inclusive[0] else a > low)
    if high is not None:
        is_within = is_within & (a <= high if inclusive[1] else a < high)
    if (low, high) != (None, None) and (not is_tensor(is_within) or is_within.graph is None):
        if not np.any(is_within):
            stats.tmean([1.0], (2.0, 3.0))  # raises SciPy's error
    return is_within | (a != a)  # NaN stays


def _sum(is_within, a, axis):
    return np.sum(where(is_within, a, 0.0), axis, keepdims=True)


def _limited_mean(a, limits, inclusive, axis):
    is_within = _is_within(a, limits, inclusive)
    return _sum(is_within, a, axis) / _sum(is_within, 1.0, axis)


def _limited_spread(finish):
    """Return a function of the variance within limits and of the number of elements there."""
    def function(a, limits, inclusive, axis, ddof):
        is_within = _is_within(a, limits, inclusive)
        n = _sum(is_within, 1.0, axis)
        mean = _sum(is_within, a, axis) / n
        deviation = where(is_within, where(abs(a) == np.inf, abs(a), a - mean), 0.0)
        variance = _sum(is_within, deviation * deviation, axis) / (n - ddof)
        return finish(where(n == 0, np.nan, variance), n)

    return function


def _limited_extreme(reduction, beyond):
    def function(a, axis, inclusive, lowerlimit=None, upperlimit=None):
        if np.size(a) == 0:
            return np.sum(a, axis, keepdims=True) * np.nan
        is_within = _is_within(a, (lowerlimit, upperlimit), (inclusive, inclusive))
        value = reduction(where(is_within, a, beyond), axis, keepdims=True)
        return where(np.any(is_within, axis, keepdims=True), value, np.nan)

    return function


# ---- order


def _iqr(x, rng, scale, interpolation, axis):
    if len(rng) != 2 or not all(0 <= x <= 100 for x in rng):
        stats.iqr([0.0, 1.0], rng=rng)  # raises SciPy's error
    if isinstance(scale, str):
        scale = 1 / stats.iqr([0.0, 1.0], rng=(0, 100), scale=scale)
    if np.size(x) == 0:
        return np.sum(x, axis, keepdims=True) * np.nan
    low, high = np.percentile(x, sorted(rng), axis, method=interpolation, keepdims=True)
    return (high - low) / scale


def _median_abs_deviation(x, center, scale, axis):
    if isinstance(scale, str) or center is not None and not callable(center):
        unit = stats.median_abs_deviation([0.0, 1.0], center=center, scale=scale)  # or an error
        scale = stats.median_abs_deviation([0.0, 1.0], center=center) / unit
    middle = (np.median(x, axis, keepdims=True) if center is None
              else np.expand_dims(center(x, axis=axis), axis))
    return np.median(abs(x - middle), axis, keepdims=True) / scale


def _trim_mean(a, proportiontocut, axis):
    n = np.shape(a)[axis]
    if n is None:
        raise ValueError(
            "scipy.stats.trim_mean takes tensors with a known number of elements along the axis: "
            "give the placeholder or signature the extent")
    n_cut = int(proportiontocut * n)
    if 2 * n_cut > n:
        stats.trim_mean(np.zeros(n), proportiontocut)  # raises SciPy's error
    parted = np.partition(a, (n_cut, max(n - n_cut - 1, 0)), axis)
    return np.expand_dims(np.mean(np.moveaxis(parted, axis, -1)[..., n_cut:n - n_cut], -1), axis)


def _entropy(values, window_length, base, method, axis):
    n = np.shape(values)[axis]
    if n is None:
        raise ValueError(
            "scipy.stats.differential_entropy takes tensors with a known number of elements along "
            "the axis: give the placeholder or signature the extent")
    m = math.floor(math.sqrt(n) + 0.5) if window_length is None else window_length
    if method == "auto":
        method = "van es" if n <= 10 else "ebrahimi" if n <= 1000 else "vasicek"
    if not 2 <= 2 * m < n or method not in _WINDOWS or base is not None and not base > 0:
        stats.differential_entropy(  # raises SciPy's error
            np.arange(2.0 * n).reshape(n, 2), window_length=window_length, base=base, method=method)
        raise ValueError(
            "scipy.stats.differential_entropy takes tensors with 3 elements at least, and a method "
            f"among {', '.join(_WINDOWS)}, got {n} elements and {method!r}")
    value = _WINDOWS[method](np.moveaxis(np.sort(values, axis), axis, -1), n, m)
    return np.expand_dims(value if base is None else value / math.log(base), axis)


def _windows(x, n, m):
    """Return the widths of windows of m elements to each side, fewer at the ends."""
    places = np.arange(n)
    return x[..., np.minimum(places + m, n - 1)] - x[..., np.maximum(places - m, 0)]


def _vasicek(x, n, m):
    return np.mean(log(_windows(x, n, m) * (n / (2 * m))), -1)


def _ebrahimi(x, n, m):
    to_end = np.minimum(np.arange(n), np.arange(n)[::-1])
    return np.mean(log(_windows(x, n, m) * n) - np.log(m + np.minimum(to_end, m)), -1)


def _van_es(x, n, m):
    rest = sum(1 / k for k in range(m, n + 1)) + math.log(m) - math.log(n + 1)
    return np.mean(log((x[..., m:] - x[..., :-m]) * ((n + 1) / m)), -1) + rest


_WINDOWS = {"vasicek": _vasicek, "ebrahimi": _ebrahimi, "van es": _van_es}


def describe(
        a: Any, axis: int | None = 0, ddof: int = 1, bias: bool = True,
        nan_policy: str = "propagate") -> Any:
    """Return moments and extrema of a sample, as `scipy.stats.describe`.

    Examples
    --------
    >>> import cytape
    >>> import numpy as np
    >>> from cytape.scipy import stats
    >>> cytape.grad(lambda a: stats.describe(a).variance)(np.array([1.0, 2.0, 6.0]))
    array([-2., -1.,  3.])
    """
    a = joined(a)
    if not is_tensor(a):
        return stats.describe(a, axis, ddof, bias, nan_policy)
    if np.size(a) == 0:
        stats.describe([])  # raises SciPy's error
    if not bias or nan_policy != "propagate":
        raise ValueError(
            "scipy.stats.describe takes tensors with bias=True and nan_policy='propagate' only, "
            f"got bias={bias!r}, nan_policy={nan_policy!r}")
    if axis is None or np.ndim(a) == 0:
        a, axis = np.reshape(a, -1), 0
    return type(stats.describe([1.0, 2.0]))(
        np.shape(a)[axis], (np.min(a, axis), np.max(a, axis)), np.mean(a, axis),
        np.var(a, axis, ddof=ddof), skew(a, axis), kurtosis(a, axis))


# ---- k-statistics


def _kstat(data, n, axis):
    if n not in (1, 2, 3, 4):
        stats.kstat([1.0, 2.0], n)  # raises SciPy's error
    count = count_of(data, axis)
    mean = np.mean(data, axis, keepdims=True)
    if n == 1:
        return mean
    central = np.mean(power_of(data - mean, n), axis, keepdims=True)
    if n == 2:
        return count * central / (count - 1)
    if n == 3:
        return count**2 * central / ((count - 1) * (count - 2))
    variance = _kstat(data, 2, axis)
    return (count**2 * (count + 1) * central - 3 * (count - 1)**3 * variance**2) / (
        (count - 1) * (count - 2) * (count - 3))


def _kstatvar(data, n, axis):
    if n not in (1, 2):
        stats.kstatvar([1.0, 2.0], n)  # raises SciPy's error
    count = count_of(data, axis)
    k2 = _kstat(data, 2, axis)
    if n == 1:
        return k2 / count
    return (2 * count * k2**2 + (count - 1) * _kstat(data, 4, axis)) / (count * (count + 1))


tmean = summary_of("tmean", _limited_mean)
tvar = summary_of("tvar", _limited_spread(lambda variance, _: variance))
tstd = summary_of("tstd", _limited_spread(lambda variance, _: variance**0.5))
tsem = summary_of("tsem", _limited_spread(lambda variance, n: (variance / n)**0.5))
tmin = summary_of("tmin", _limited_extreme(np.min, np.inf))
tmax = summary_of("tmax", _limited_extreme(np.max, -np.inf))
differential_entropy = summary_of("differential_entropy", _entropy)
iqr = summary_of("iqr", _iqr)
median_abs_deviation = summary_of("median_abs_deviation", _median_abs_deviation)
trim_mean = summary_of("trim_mean", _trim_mean)
kstat = summary_of("kstat", np.errstate(all="ignore")(_kstat))
kstatvar = summary_of("kstatvar", np.errstate(all="ignore")(_kstatvar))
