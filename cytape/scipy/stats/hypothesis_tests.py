"""Tests of means, variances, normality and frequencies: statistics and p-values of samples.

A test is a function of samples whose last axis is that of the observations. Those of ranks have no
derivative (`rank_tests`).
"""

import functools
import inspect
import math

import numpy as np
import scipy.stats as stats

from cytape.ops.calls.operands import is_tensor, joined
from cytape.ops.elementwise import abs, arcsinh, log, log1p, maximum, sqrt, where
from cytape.ops.special import xlogy
from cytape.scipy.stats.half_line import chi2, f
from cytape.scipy.stats.real_line import norm, t
from cytape.scipy.stats.samples import pearsonr, pvalue_of
from cytape.scipy.stats.summaries import kurtosis, skew

__all__ = [
    "bartlett", "chi2_contingency", "chisquare", "combine_pvalues", "f_oneway", "jarque_bera",
    "kurtosistest", "levene", "normaltest", "pointbiserialr", "power_divergence", "skewtest",
    "ttest_1samp", "ttest_ind", "ttest_ind_from_stats", "ttest_rel"]

_ONLY = {"nan_policy": "propagate", "keepdims": False, "method": None, "trim": 0}
_SAMPLES = ("a", "b", "x", "f_obs", "f_exp", "pvalues", "weights")


def _test(name, function, only=_ONLY):
    """Return a test of SciPy that takes tensors."""
    scipys = getattr(stats, name)
    signature = inspect.signature(scipys)

    def test(*args, **kwds):
        bound = signature.bind(*map(joined, args), **{key: joined(x) for key, x in kwds.items()})
        bound.apply_defaults()
        given = bound.arguments
        if not any(map(is_tensor, (*given.get("samples", ()), *given.values()))):
            return scipys(*args, **kwds)
        for option, value in only.items():
            found = given.pop(option, value)
            if found is not value and found != value:
                raise ValueError(
                    f"scipy.stats.{name} takes tensors with {option}={value!r} only, got "
                    f"{option}={found!r}")
        if "axis" in given:
            axis = given.pop("axis")
            if axis is not None and np.ndim(axis):
                raise ValueError(
                    f"scipy.stats.{name} takes tensors with one axis or None, got axis={axis!r}")
            for key in _SAMPLES:
                if given.get(key) is not None:
                    given[key] = _rows(given[key], axis)
            if "popmean" in given and np.ndim(given["popmean"]):
                given["popmean"] = _rows(given["popmean"], axis)[..., 0]
        samples = [_rows(x, axis) for x in given.pop("samples", ())]
        with np.errstate(all="ignore"):
            return function(*samples, **given)

    test.__name__, test.__doc__ = name, f"Forward to `scipy.stats.{name}`."
    return test


def _rows(x, axis):
    x = x if is_tensor(x) else np.asarray(x)
    return np.reshape(x, -1) if axis is None else np.moveaxis(x, axis, -1)


def _count(x):
    """Return the number of observations."""
    n = np.shape(x)[-1]
    return np.sum(np.ones_like(x), -1) if n is None else n


def _mean(x):
    return np.mean(x, -1)


def _is(n, number):
    return not is_tensor(n) and np.ndim(n) == 0 and n == number


def _inverse(n):
    return np.nan if _is(n, 0) else 1 / n


def _squares(x):
    """Return the sum of squares of deviations, NaN of no elements."""
    squares = np.sum((x - np.mean(x, -1, keepdims=True))**2, -1)
    return squares * np.nan if _is(_count(x), 0) else squares


_EXAMPLES = {
    **dict.fromkeys(["skewtest", "kurtosistest", "normaltest", "jarque_bera"],
                    [np.arange(20.0)**2]),
    **dict.fromkeys(["chisquare", "power_divergence"], [[1.0, 2.0]]),
    "chi2_contingency": [[[1.0, 2.0], [2.0, 3.0]]],
    "pointbiserialr": ([0, 1, 0], [1.0, 2.0, 4.0]), "combine_pvalues": [[0.1, 0.2]],
    "ttest_ind_from_stats": (1.0, 2.0, 3, 2.0, 3.0, 4)}


@functools.cache
def _class_of(name):
    """Return the class of SciPy's results of a test."""
    return type(getattr(stats, name)(*_EXAMPLES.get(name, ([1.0, 2.0, 4.0], [1.0, 3.0, 7.0]))))


def _result(name, statistic, pvalue):
    return _class_of(name)(statistic, pvalue)


# ---- means


def _t_result(difference, error, df, alternative, estimate):
    statistic = difference / error
    pvalue = pvalue_of(statistic, t, alternative, df)
    return _class_of("ttest_rel")(
        statistic, pvalue, df=df + np.zeros_like(statistic),
        alternative={"less": -1, "two-sided": 0, "greater": 1}[alternative], standard_error=error,
        estimate=estimate, statistic_np=np.zeros(np.shape(statistic)), xp=np)


def _one_sample(a, popmean, alternative):
    mean, n = _mean(a), _count(a)
    error = sqrt(_squares(a) / (n - 1) * _inverse(n))
    return _t_result(mean - popmean, error, n - 1, alternative, mean)


def _spread(s1, n1, s2, n2, equal_var):
    """Return the degrees of freedom and the error of a difference of means, of squares."""
    if equal_var:
        df = n1 + n2 - 2.0
        return df, sqrt((s1 + s2) / df * (_inverse(n1) + _inverse(n2)))
    v1, v2 = s1 / (n1 - 1) * _inverse(n1), s2 / (n2 - 1) * _inverse(n2)
    return (v1 + v2)**2 / (v1**2 / (n1 - 1) + v2**2 / (n2 - 1)), sqrt(v1 + v2)


def _two_samples(a, b, equal_var, alternative):
    df, error = _spread(_squares(a), _count(a), _squares(b), _count(b), equal_var)
    difference = _mean(a) - _mean(b)
    return _t_result(difference, error, df, alternative, difference)


def _of_summaries(mean1, std1, nobs1, mean2, std2, nobs2, equal_var, alternative):
    df, error = _spread(
        np.square(std1) * (nobs1 - 1), nobs1, np.square(std2) * (nobs2 - 1), nobs2, equal_var)
    statistic = (mean1 - mean2) / error
    return _result(
        "ttest_ind_from_stats", statistic, pvalue_of(statistic, t, alternative, df))


def _between(samples):
    """Return the F statistic of the means of samples, and its degrees of freedom."""
    n, k = sum(map(_count, samples)), len(samples)
    mean = sum(np.sum(x, -1) for x in samples) / n
    between = sum(_count(x) * (_mean(x) - mean)**2 for x in samples)
    within = sum(map(_squares, samples))
    return between * (n - k) / ((k - 1) * within), k - 1, n - k


def _one_way(*samples, equal_var):
    _at_least_two(stats.f_oneway, samples)
    if not equal_var:
        raise ValueError("scipy.stats.f_oneway takes tensors with equal_var=True only")
    statistic, *df = _between(samples)
    return _result("f_oneway", statistic, f.sf(statistic, *df))


def _at_least_two(scipys, samples):
    if len(samples) < 2:
        scipys(*([1.0, 2.0] for _ in samples))  # raises SciPy's error


# ---- variances


def _bartlett(*samples):
    _at_least_two(stats.bartlett, samples)
    k, n = len(samples), sum(map(_count, samples))
    parts = [(_count(x) - 1, _squares(x)) for x in samples]
    pooled = sum(squares for _, squares in parts) / (n - k)
    value = (n - k) * log(pooled) - sum(df * log(squares / df) for df, squares in parts)
    value = value / (
        1 + (sum(_inverse(df) for df, _ in parts) - _inverse(n - k)) / (3 * (k - 1)))
    value = maximum(value, 0.0)
    return _result("bartlett", value, chi2.sf(value, k - 1))


def _levene(*samples, center, proportiontocut):
    if center not in ("mean", "median") or len(samples) < 2:
        stats.levene(*([1.0, 2.0] for _ in samples), center=center)  # raises SciPy's error
        raise ValueError(
            f"scipy.stats.levene takes tensors with center='mean' or 'median', got {center!r}")
    distances = [abs(x - getattr(np, center)(x, -1, keepdims=True)) for x in samples]
    statistic, *df = _between(distances)
    return _result("levene", statistic, f.sf(statistic, *df))


# ---- normality


def _skewness(a, alternative="two-sided"):
    n = _count(a)
    n = where(n < 8, np.nan, n) if is_tensor(n) else n if n >= 8 else np.nan
    y = skew(a, -1) * ((n + 1) * (n + 3) / (6.0 * (n - 2)))**0.5
    beta = 3.0 * (n**2 + 27 * n - 70) * (n + 1) * (n + 3) / (
        (n - 2.0) * (n + 5) * (n + 7) * (n + 9))
    square = (2 * (beta - 1))**0.5 - 1
    logarithm = log(square) if is_tensor(square) else math.log(square)
    statistic = arcsinh(y / (2.0 / (square - 1))**0.5) / (0.5 * logarithm)**0.5
    return _result("skewtest", statistic, pvalue_of(statistic, norm, alternative))


def _kurtosis(a, alternative="two-sided"):
    n = _count(a)
    n = where(n < 5, np.nan, n) if is_tensor(n) else n if n >= 5 else np.nan
    variance = 24.0 * n * (n - 2) * (n - 3) / ((n + 1) * (n + 1.0) * (n + 3) * (n + 5))
    x = (kurtosis(a, -1, fisher=False) - 3.0 * (n - 1) / (n + 1)) / variance**0.5
    root = 6.0 * (n * n - 5 * n + 2) / ((n + 7) * (n + 9)) * (
        6.0 * (n + 3) * (n + 5) / (n * (n - 2) * (n - 3)))**0.5
    shape = 6.0 + 8.0 / root * (2.0 / root + (1 + 4.0 / root**2)**0.5)
    denominator = 1 + x * (2 / (shape - 4.0))**0.5
    root = ((1 - 2.0 / shape) / abs(denominator))**(1 / 3)
    statistic = (1 - 2 / (9.0 * shape) - where(denominator < 0, -root, root)) / (
        2 / (9.0 * shape))**0.5
    return _result("kurtosistest", statistic, pvalue_of(statistic, norm, alternative))


def _normality(a):
    statistic = _skewness(a)[0]**2 + _kurtosis(a)[0]**2
    return _result("normaltest", statistic, chi2.sf(statistic, 2.0))


def _jarque_bera(x):
    statistic = _count(x) / 6 * (skew(x, -1)**2 + kurtosis(x, -1)**2 / 4)
    return _result("jarque_bera", statistic, chi2.sf(statistic, 2.0))


# ---- frequencies and probabilities

_POWERS = {
    "pearson": 1, "log-likelihood": 0, "freeman-tukey": -0.5, "mod-log-likelihood": -1,
    "neyman": -2, "cressie-read": 2 / 3}


def _divergence(f_obs, f_exp, ddof, lambda_=1, sum_check=True):
    if lambda_ is None or isinstance(lambda_, str):
        if lambda_ not in (None, *_POWERS):
            stats.power_divergence([1.0, 2.0], lambda_=lambda_)  # raises SciPy's error
        lambda_ = _POWERS.get(lambda_, 1)
    if f_exp is None:
        f_exp = np.mean(f_obs, -1, keepdims=True)
    elif sum_check and all(not is_tensor(x) or x.graph is None for x in (f_obs, f_exp)):
        stats.chisquare(*(np.sum(x if not is_tensor(x) else x.numpy(), -1, keepdims=True)
                          for x in (f_obs, f_exp)), axis=-1)  # raises SciPy's error
    if lambda_ == 1:
        terms = (f_obs - f_exp)**2 / f_exp
    elif lambda_ == 0:
        terms = 2.0 * xlogy(f_obs, f_obs / f_exp)
    elif lambda_ == -1:
        terms = 2.0 * xlogy(f_exp, f_exp / f_obs)
    else:
        terms = f_obs * ((f_obs / f_exp)**lambda_ - 1) / (0.5 * lambda_ * (lambda_ + 1))
    statistic = np.sum(terms, -1)
    return _result(
        "power_divergence", statistic, chi2.sf(statistic, _count(terms) - 1 - np.asarray(ddof)))


def _contingency(observed, correction, lambda_):
    extents = np.shape(observed)
    known = observed if not is_tensor(observed) else None if observed.graph else observed.numpy()
    if known is not None and (0 in extents or np.any(known < 0)):
        stats.chi2_contingency(known)  # raises SciPy's error
    axes = range(len(extents))
    expected = math.prod(
        np.sum(observed, tuple(x for x in axes if x != axis), keepdims=True) for axis in axes
    ) / np.sum(observed)**(len(extents) - 1)
    if known is not None and not np.all(expected > 0):
        stats.chi2_contingency(known)  # raises SciPy's error
    size = math.prod(extents)
    dof = size - sum(extents) + len(extents) - 1
    if dof == 1 and correction:
        difference = expected - observed
        observed = observed + where(abs(difference) < 0.5, difference, 0.5 * np.sign(difference))
    statistic, pvalue = _divergence(
        np.reshape(observed, -1), np.reshape(expected, -1), size - 1 - dof, lambda_, False)
    if dof == 0:
        statistic, pvalue = 0 * statistic, 1 + 0 * statistic
    return _class_of("chi2_contingency")(statistic, pvalue, dof, expected)


def _combined(pvalues, method, weights):
    n = _count(pvalues)
    if method == "fisher":
        statistic = -2 * np.sum(log(pvalues), -1)
        pvalue = chi2.sf(statistic, 2 * n)
    elif method == "pearson":
        statistic = 2 * np.sum(log1p(-pvalues), -1)
        pvalue = chi2.cdf(-statistic, 2 * n)
    elif method == "mudholkar_george":
        statistic = np.sum(log1p(-pvalues) - log(pvalues), -1)
        df = 5 * n + 4
        pvalue = t.sf(statistic * ((3 / n) * df / (df - 2))**0.5 / np.pi, df)
    elif method == "stouffer":
        weights = np.ones_like(pvalues) if weights is None else weights
        statistic = np.sum(weights * norm.isf(pvalues), -1) / sqrt(np.sum(weights * weights, -1))
        pvalue = norm.sf(statistic)
    elif method == "tippett":
        statistic = np.min(pvalues, -1)
        pvalue = -np.expm1(n * log1p(-statistic))
    else:
        stats.combine_pvalues([0.5, 0.5], method)  # raises SciPy's error
    return _result("combine_pvalues", statistic, pvalue)


ttest_1samp = _test("ttest_1samp", _one_sample)
ttest_rel = _test("ttest_rel", lambda a, b, alternative: _one_sample(a - b, 0.0, alternative))
ttest_ind = _test("ttest_ind", _two_samples)
ttest_ind_from_stats = _test("ttest_ind_from_stats", _of_summaries)
f_oneway = _test("f_oneway", _one_way)
bartlett = _test("bartlett", _bartlett)
levene = _test("levene", _levene)
skewtest = _test("skewtest", _skewness)
kurtosistest = _test("kurtosistest", _kurtosis)
normaltest = _test("normaltest", _normality)
jarque_bera = _test("jarque_bera", _jarque_bera)
chisquare = _test("chisquare", _divergence)
power_divergence = _test("power_divergence", _divergence)
chi2_contingency = _test("chi2_contingency", _contingency)
combine_pvalues = _test(
    "combine_pvalues", _combined, {"keepdims": False, "nan_policy": "propagate"})
pointbiserialr = _test(
    "pointbiserialr", lambda x, y: _result("pointbiserialr", *pearsonr(x, y, axis=-1)))
