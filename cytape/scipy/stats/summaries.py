"""Summaries of samples: means, moments and scores, and the entropy of probabilities."""

import inspect
import math

import numpy as np
import scipy.stats as stats

from cytape.autodiff.custom.custom_gradient import stop_gradient
from cytape.ops.calls.operands import is_tensor, joined
from cytape.ops.elementwise import where
from cytape.ops.special import entr, rel_entr
from cytape.scipy.stats.distribution import in_precision
from cytape.scipy.stats.samples import boxcox, yeojohnson

__all__ = [
    "boxcox_llf", "circmean", "circstd", "circvar", "entropy", "gmean", "gstd", "gzscore", "hmean",
    "kurtosis", "moment", "pmean", "sem", "skew", "variation", "yeojohnson_llf", "zmap", "zscore"]

_ONLY = {"nan_policy": "propagate", "bias": True, "dtype": None}
_SAMPLES = ("a", "pk", "qk", "weights", "scores", "compare", "samples", "data", "x", "values")


def summary_of(name, function):
    """Return a function of SciPy that takes tensors."""
    scipys = getattr(stats, name)
    signature = inspect.signature(scipys)

    def summary(*args, **kwds):
        args = tuple(map(joined, args))
        bound = signature.bind(*args, **kwds)
        bound.apply_defaults()
        given = bound.arguments
        if not any(map(is_tensor, given.values())):
            return scipys(*args, **kwds)
        for option, value in _ONLY.items():
            found = given.pop(option, value)
            if is_tensor(found) or found is not value and not np.array_equal(found, value):
                raise ValueError(
                    f"scipy.stats.{name} takes tensors with {option}={value!r} only, got "
                    f"{option}={found!r}")
        axis, keepdims = given.pop("axis"), given.pop("keepdims", False)
        first = given[next(parameter for parameter in given if parameter in _SAMPLES)]
        is_score = name in ("gzscore", "zmap", "zscore")
        # A number is a sample of one element.
        is_number = np.ndim(first) == 0 and not is_score
        samples = [parameter for parameter in given if parameter in _SAMPLES]
        if "weights" in samples and given["weights"] is not None:
            given[samples[0]], given["weights"] = np.broadcast_arrays(first, given["weights"])
        if axis is None or is_number:
            given.update({x: np.reshape(given[x], -1) for x in samples if given[x] is not None})
        result = in_precision(
            function(**given, axis=0 if axis is None else axis),
            [given[x] for x in samples if given[x] is not None])
        if is_score:
            return result if axis is not None else np.reshape(result, np.shape(first))
        if axis is None and keepdims:
            return np.reshape(result, (1,) * np.ndim(first))
        return result if keepdims else np.squeeze(result, 0 if axis is None else axis)

    summary.__name__, summary.__doc__ = name, f"Forward to `scipy.stats.{name}`."
    return summary


def _mean(x, axis, weights=None):
    if weights is None:
        return np.mean(x, axis, keepdims=True)
    return np.sum(x * weights, axis, keepdims=True) / np.sum(weights, axis, keepdims=True)


def count_of(x, axis):
    """Return the number of elements, a Python number if it is known."""
    extents = [np.shape(x)[i] for i in np.atleast_1d(axis)]
    return np.sum(np.ones_like(x), axis, keepdims=True) if None in extents else float(
        math.prod(extents))


def power_of(x, order):
    """Return a power, the first ones by products: `numpy.power` takes ten times as long."""
    if order not in (2, 3, 4):
        return x**order
    square = x * x
    return square if order == 2 else square * (x if order == 3 else square)


def _standardised_moment(order):
    def function(a, axis):
        deviation = a - _mean(a, axis)
        variance = _mean(deviation * deviation, axis)
        return _mean(power_of(deviation, order), axis) / variance**(0.5 * order)

    return function


def _entropy(pk, qk, base, axis):
    if base is not None and not is_tensor(base):
        stats.entropy([1.0], base=base)  # raises errors
    if qk is not None:
        pk, qk = np.broadcast_arrays(pk, qk)
        qk = _normalised(qk, axis)
    pk = _normalised(pk, axis)
    total = _total(pk, axis)
    value = np.sum(entr(pk) if qk is None else rel_entr(pk, qk), axis, keepdims=True) / total
    if qk is None:
        value = value + np.log(total)
    else:
        value = value + np.log(_total(qk, axis) / total)
    return value if base is None else value / np.log(base)


def _total(p, axis):
    """Return the sum, 1 for no elements."""
    return where(count_of(p, axis) == 0, 1, np.sum(p, axis, keepdims=True))


def _normalised(p, axis):
    """Return weights of the sum 1, as constants; an infinite slope would spread by the sum."""
    return p / stop_gradient(np.sum(p, axis, keepdims=True))


def _deviation(a, ddof, axis):
    return np.std(a, axis, ddof=ddof, keepdims=True)


def _scale(a, ddof, axis):
    return where(ddof > count_of(a, axis), np.nan, _deviation(a, ddof, axis))


def _gmean(a, axis, weights=None):
    """Return the geometric mean; the powers of zeros apart, as their slopes are infinite."""
    is_zero = a == 0
    with np.errstate(divide="ignore"):  # of no elements
        share = np.divide(1.0, count_of(a, axis)) if weights is None else weights / np.sum(
            weights, axis, keepdims=True)
    return np.exp(_mean(np.log(where(is_zero, 1, a)), axis, weights)) * np.prod(
        where(is_zero, where(is_zero, a, 1)**share, 1), axis, keepdims=True)


def _pmean(a, p, axis, weights=None):
    if not isinstance(p, (int, float, np.number)):
        stats.pmean([1.0], p)  # raises SciPy's error
    if p == 0:
        return _gmean(a, axis, weights)
    a = where(a < 0, np.nan, a)
    if p < 0 and 0 not in np.shape(a):  # of ratios to the smallest, which may be 0
        least = np.min(a, axis, keepdims=True)
        ratios = _mean(where(least == a, 1.0, least / where(least == a, 1.0, a))**-p, axis, weights)
        return np.min(a, axis, keepdims=np.ndim(ratios) == np.ndim(a)) * ratios**(1 / p)
    return _mean(a**p, axis, weights)**(1 / p)


def _moment(a, order, center, axis):
    if np.ndim(order):
        raise ValueError(
            f"scipy.stats.moment takes tensors with a single order only, got order={order!r}")
    if order != int(order):
        stats.moment([1.0], order)  # raises SciPy's error
    return _mean(power_of(a - (_mean(a, axis) if center is None else center), order), axis)


def _log_likelihood(transform, log_slope):
    """Return the logarithm of the likelihood of normal samples after a transform."""
    def function(lmb, data, axis):
        variance = np.var(transform(data, lmb), axis, keepdims=True)
        slopes = np.sum(log_slope(data), axis, keepdims=True)
        return (lmb - 1) * slopes - 0.5 * count_of(data, axis) * np.log(variance)

    return function


def _resultant(samples, high, low, axis):
    """Return the mean point of samples on the unit circle."""
    angles = samples * (2 * np.pi / (high - low))
    return _mean(np.sin(angles), axis), _mean(np.cos(angles), axis)


def _circmean(samples, high, low, axis):
    sine, cosine = _resultant(samples, high, low, axis)
    period = high - low
    return np.mod(np.arctan2(sine, cosine) * (period / (2 * np.pi)) - low, period) + low


def _circstd(samples, high, low, normalize, axis):
    deviations = samples - stop_gradient(_mean(samples, axis))  # of equal ones, the radius is 1
    radius = np.hypot(*_resultant(deviations, high, low, axis))
    is_equal = radius >= 1
    spread = where(is_equal, 0.0, np.sqrt(-2 * np.log(where(is_equal, 0.5, radius))))
    return spread * (1 if normalize else (high - low) / (2 * np.pi))


boxcox_llf = summary_of("boxcox_llf", _log_likelihood(lambda x, lmb: boxcox(x, lmb), np.log))
yeojohnson_llf = summary_of("yeojohnson_llf", _log_likelihood(
    yeojohnson, lambda x: np.sign(x) * np.log1p(np.abs(x))))
circmean = summary_of("circmean", _circmean)
circstd = summary_of("circstd", _circstd)
circvar = summary_of("circvar", lambda samples, high, low, axis: (
    1 - np.minimum(np.hypot(*_resultant(samples, high, low, axis)), 1)))
gstd = summary_of("gstd", lambda a, ddof, axis: np.exp(_deviation(np.log(a), ddof, axis)))
gzscore = summary_of("gzscore", lambda a, ddof, axis: (
    np.log(a) - _mean(np.log(a), axis)) / _scale(np.log(a), ddof, axis))
entropy = summary_of("entropy", _entropy)
gmean = summary_of("gmean", _gmean)
hmean = summary_of("hmean", lambda a, axis, weights: _pmean(a, -1, axis, weights))
moment = summary_of("moment", _moment)
pmean = summary_of("pmean", _pmean)
skew = summary_of("skew", _standardised_moment(3))
kurtosis = summary_of("kurtosis", lambda a, fisher, axis: (
    _standardised_moment(4)(a, axis) - (3 if fisher else 0)))
sem = summary_of("sem", lambda a, ddof, axis: _deviation(a, ddof, axis) / count_of(a, axis)**0.5)
variation = summary_of("variation", lambda a, ddof, axis: _scale(a, ddof, axis) / _mean(a, axis))
zscore = summary_of("zscore", lambda a, ddof, axis: (a - _mean(a, axis)) / _scale(a, ddof, axis))
zmap = summary_of("zmap", lambda scores, compare, ddof, axis: (
    (scores - _mean(compare, axis)) / _scale(compare, ddof, axis)))
