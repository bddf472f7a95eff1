"""Summaries of samples: means, moments and scores, and the entropy of probabilities."""

import inspect

import numpy as np
import scipy.stats as stats

from cytape.ops.calls.operands import is_tensor, joined
from cytape.ops.elementwise import where
from cytape.ops.special import entr, rel_entr

__all__ = [
    "entropy", "gmean", "hmean", "kurtosis", "moment", "pmean", "sem", "skew", "variation", "zmap",
    "zscore"]

_ONLY = {"nan_policy": "propagate", "bias": True, "weights": None, "dtype": None}


def _summary(name, function):
    """Return a function of SciPy that takes tensors along one axis."""
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
            if found is not value and not np.array_equal(found, value):
                raise ValueError(
                    f"scipy.stats.{name} takes tensors with {option}={value!r} only, got "
                    f"{option}={found!r}")
        axis, keepdims = given.pop("axis"), given.pop("keepdims", False)
        first = next(iter(given.values()))
        operands = [np.reshape(x, -1) if axis is None and np.ndim(x) else x
                    for x in given.values()]
        result = function(*operands, axis=0 if axis is None else axis)
        if name in ("zmap", "zscore"):
            return result if axis is not None else np.reshape(result, np.shape(first))
        if axis is None and keepdims:
            return np.reshape(result, (1,) * np.ndim(first))
        return result if keepdims else np.squeeze(result, 0 if axis is None else axis)

    summary.__name__, summary.__doc__ = name, f"Forward to `scipy.stats.{name}`."
    return summary


def _mean(x, axis):
    return np.mean(x, axis, keepdims=True)


def _standardised_moment(order):
    def function(a, axis):
        deviation = a - _mean(a, axis)
        return _mean(deviation**order, axis) / _mean(deviation**2, axis)**(0.5 * order)

    return function


def _entropy(pk, qk, base, axis):
    if qk is not None:
        pk, qk = np.broadcast_arrays(pk, qk)
    pk = pk / np.sum(pk, axis, keepdims=True)
    terms = entr(pk) if qk is None else rel_entr(pk, qk / np.sum(qk, axis, keepdims=True))
    value = np.sum(terms, axis, keepdims=True)
    return value if base is None else value / np.log(base)


def _deviation(a, ddof, axis):
    return np.std(a, axis, ddof=ddof, keepdims=True)


def _gmean(a, axis):
    return np.exp(_mean(np.log(a), axis))


def _pmean(a, p, axis):
    stats.pmean([1.0], p)  # raises errors
    return _gmean(a, axis) if p == 0 else _mean(where(a < 0, np.nan, a)**p, axis)**(1 / p)


def _moment(a, order, center, axis):
    if np.ndim(order):
        raise ValueError(
            f"scipy.stats.moment takes tensors with a single order only, got order={order!r}")
    stats.moment([1.0], order)  # raises errors
    return _mean((a - (_mean(a, axis) if center is None else center))**order, axis)


entropy = _summary("entropy", _entropy)
gmean = _summary("gmean", _gmean)
hmean = _summary("hmean", lambda a, axis: _pmean(a, -1, axis))
moment = _summary("moment", _moment)
pmean = _summary("pmean", _pmean)
skew = _summary("skew", _standardised_moment(3))
kurtosis = _summary("kurtosis", lambda a, fisher, axis: (
    _standardised_moment(4)(a, axis) - (3 if fisher else 0)))
sem = _summary("sem", lambda a, ddof, axis: _deviation(a, ddof, axis) / a.shape[axis]**0.5)
variation = _summary("variation", lambda a, ddof, axis: _deviation(a, ddof, axis) / _mean(a, axis))
zscore = _summary("zscore", lambda a, ddof, axis: (
    (a - _mean(a, axis)) / _deviation(a, ddof, axis)))
zmap = _summary("zmap", lambda scores, compare, ddof, axis: (
    (scores - _mean(compare, axis)) / _deviation(compare, ddof, axis)))
