"""Distributions of counts. Quantiles are steps and have no derivatives in the parameters."""

import functools

import numpy as np
import scipy.stats as stats

from cytape.ops.calls.operands import is_tensor
from cytape.ops.elementwise import (
    abs,
    exp,
    expm1,
    log,
    log1p,
    maximum,
    minimum,
    sqrt,
    where,
)
from cytape.ops.probabilities.line_integrals import line_integral, wallenius
from cytape.ops.probabilities.log_probabilities import (
    beta_rest,
    log_betainc,
    log_betaincc,
    log_gammainc,
    log_gammaincc,
)
from cytape.ops.sampling.quantile_functions import count_op, ncx2_sf, power_series_rest
from cytape.ops.special import (
    betainc,
    betaincc,
    betaln,
    chndtr,
    exprel,
    gammainc,
    gammaincc,
    gammaln,
    log_expit,
    logsumexp,
    xlog1py,
    xlogy,
    zeta,
)
from cytape.ops.special.bessel_functions import log_ive
from cytape.ops.special.incomplete_functions import beta_density, gamma_density
from cytape.scipy.stats.distribution import Distribution, complementary

__all__ = [
    "bernoulli", "betabinom", "betanbinom", "binom", "boltzmann", "dlaplace", "geom", "hypergeom",
    "logser", "nbinom", "nchypergeom_fisher", "nchypergeom_wallenius", "nhypergeom", "planck",
    "poisson", "poisson_binom", "randint", "skellam", "yulesimon", "zipf", "zipfian"]

_COUNTS = (0, np.inf)

poisson = Distribution(
    stats.poisson, lambda k, mu: xlogy(k, mu) - gammaln(k + 1) - mu,
    lambda k, mu: gammaincc(k + 1, mu), lambda k, mu: gammainc(k + 1, mu),
    lambda k, mu: log_gammaincc(k + 1, mu), lambda k, mu: log_gammainc(k + 1, mu),
    pdf=lambda k, mu: gamma_density(k + 1, mu), support=_COUNTS, inside=1, probability=0,
    moments={"mean": lambda mu: mu, "var": lambda mu: mu})


def _is_whole(n):
    return np.floor(n) == n


def _rest(k, n):
    """Return n - k, positive also beyond the support."""
    return where(k < n, n - k, 1)


binom = Distribution(
    stats.binom, lambda k, n, p: (
        gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1) + xlogy(k, p) + xlog1py(n - k, -p)),
    lambda k, n, p: beta_rest(k + 1, _rest(k, n), p),
    lambda k, n, p: betainc(k + 1, _rest(k, n), p),
    lambda k, n, p: log_betaincc(k + 1, _rest(k, n), p),
    lambda k, n, p: log_betainc(k + 1, _rest(k, n), p),
    pdf=lambda k, n, p: beta_density(k + 1, n - k + 1, p) / (n + 1),
    support=lambda n, p: (0, n), inside=0, probability=1,
    valid=lambda n, p: (n >= 0) & _is_whole(n) & (p >= 0) & (p <= 1),
    moments={"mean": lambda n, p: n * p, "var": lambda n, p: n * p * (1 - p)})
bernoulli = Distribution(
    stats.bernoulli, lambda k, p: xlogy(k, p) + xlog1py(1 - k, -p),
    lambda k, p: where(k < 1, 1 - p, 1.0), lambda k, p: where(k < 1, p, 0.0),
    pdf=lambda k, p: where(k < 1, 1 - p, p), support=(0, 1), inside=0,
    probability=0, valid=lambda p: (p >= 0) & (p <= 1),
    moments={"mean": lambda p: p, "var": lambda p: p * (1 - p)})
nbinom = Distribution(
    stats.nbinom, lambda k, n, p: (
        gammaln(n + k) - gammaln(k + 1) - gammaln(n) + n * log(p) + xlog1py(k, -p)),
    lambda k, n, p: betainc(n, k + 1, p), lambda k, n, p: beta_rest(n, k + 1, p),
    lambda k, n, p: log_betainc(n, k + 1, p), lambda k, n, p: log_betaincc(n, k + 1, p),
    pdf=lambda k, n, p: beta_density(n, k + 1, p) * p / (n + k), support=_COUNTS, inside=1,
    probability=1,
    valid=lambda n, p: (n > 0) & (p > 0) & (p <= 1),
    moments={"mean": lambda n, p: n * (1 - p) / p, "var": lambda n, p: n * (1 - p) / (p * p)})
geom = Distribution(
    stats.geom, lambda k, p: xlog1py(k - 1, -p) + log(p), lambda k, p: betainc(1.0, k, p),
    lambda k, p: betaincc(1.0, k, p), lambda k, p: log_betainc(1.0, k, p),
    lambda k, p: k * log1p(-p), lambda k, p: beta_density(1.0, k, p) * p / k, support=(1, np.inf),
    inside=1, probability=0, valid=lambda p: (p > 0) & (p <= 1),
    moments={"mean": lambda p: 1 / p, "var": lambda p: (1 - p) / (p * p)})
planck = Distribution(
    stats.planck, lambda k, rate: log(-expm1(-rate)) - rate * k,
    lambda k, rate: -expm1(-rate * (k + 1)), lambda k, rate: exp(-rate * (k + 1)),
    logsf=lambda k, rate: -rate * (k + 1), support=_COUNTS, inside=1, valid=lambda rate: rate > 0)
zipf = Distribution(
    stats.zipf, lambda k, a: -a * log(k) - log(zeta(a, 1)),
    lambda k, a: 1 - zeta(a, k + 1) / zeta(a, 1), lambda k, a: zeta(a, k + 1) / zeta(a, 1),
    support=(1, np.inf), inside=1, valid=lambda a: a > 1)
randint = Distribution(
    stats.randint, lambda k, low, high: 0 * k - log(high - low),
    lambda k, low, high: (k - low + 1) / (high - low),
    lambda k, low, high: (high - k - 1) / (high - low), support=lambda low, high: (low, high - 1),
    inside=lambda low, high: low,
    valid=lambda low, high: (low < high) & _is_whole(low) & _is_whole(high), moments={
        "mean": lambda low, high: 0.5 * (low + high - 1),
        "var": lambda low, high: ((high - low) * (high - low) - 1) / 12,
        "entropy": lambda low, high: log(high - low)})


# ---- finite sums of probabilities


def _log_choices(n, k):
    return gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)


def _known(scipys, x):
    if is_tensor(x) and x.graph is not None:
        raise ValueError(
            f"{scipys.name}: the distribution function sums probabilities up to a largest count, "
            "which must be known; a symbolic tensor was passed: use numbers or arrays for the "
            "counts and their bounds")
    return x.numpy() if is_tensor(x) else x


def _column(x):
    return x[..., None] if np.ndim(x) else x


def _summed(scipys, log_pmf, support, inside, valid, **options):
    """Return a distribution whose probabilities are sums: to the end of the support, if finite."""
    def total(k, shapes, compare):
        low, high = support(*shapes)
        is_finite = high is not np.inf
        terms = np.arange(np.max(_known(scipys, high if is_finite else k), initial=0) + 1.0)
        shapes = [_column(shape) for shape in shapes]
        is_counted = (terms >= _column(low)) & (terms <= _column(high)) & compare(terms, _column(k))
        logarithms = log_pmf(where(is_counted, terms, inside(*shapes)), *shapes)
        return np.sum(where(is_counted, exp(logarithms), 0.0), -1) + 0 * k  # NaN for NaN

    def cdf(k, *shapes):
        return total(k, shapes, np.less_equal)

    def sf(k, *shapes):
        is_finite = support(*shapes)[1] is not np.inf
        return total(k, shapes, np.greater) if is_finite else 1 - cdf(k, *shapes)

    return Distribution(
        scipys, log_pmf, cdf, sf, support=support, inside=inside, valid=valid, **options)


betabinom = _summed(
    stats.betabinom, lambda k, n, a, b: (
        betaln(k + a, n - k + b) - betaln(a, b) - betaln(n - k + 1, k + 1) - log(n + 1)),
    lambda n, a, b: (0, n), lambda n, a, b: 0,
    lambda n, a, b: (n >= 0) & _is_whole(n) & (a > 0) & (b > 0), fixed=(0,),
    moments={"mean": lambda n, a, b: n * a / (a + b), "var": lambda n, a, b: (
        n * a * b * (a + b + n) / ((a + b)**2 * (a + b + 1)))})
betanbinom = _summed(
    stats.betanbinom, lambda k, n, a, b: (
        betaln(a + n, b + k) - betaln(a, b) - betaln(n, k + 1) - log(n + k)),
    lambda n, a, b: (0, np.inf), lambda n, a, b: 1,
    lambda n, a, b: (n >= 0) & _is_whole(n) & (a > 0) & (b > 0), fixed=(0,))
hypergeom = _summed(
    stats.hypergeom, lambda k, total, n, draws: (
        _log_choices(n, k) + _log_choices(total - n, draws - k) - _log_choices(total, draws)),
    lambda total, n, draws: (maximum(draws - (total - n), 0), minimum(n, draws)),
    lambda total, n, draws: minimum(n, draws), lambda total, n, draws: (
        (n >= 0) & (draws >= 0) & (n <= total) & (draws <= total) & _is_whole(total)
        & _is_whole(n) & _is_whole(draws)))
nhypergeom = _summed(
    stats.nhypergeom, lambda k, total, n, r: (
        _log_choices(k + r - 1, k) + _log_choices(total - r - k, n - k) - _log_choices(total, n)),
    lambda total, n, r: (0, n), lambda total, n, r: 0, lambda total, n, r: (
        (n >= 0) & (n <= total) & (r >= 0) & (r <= total - n) & _is_whole(total) & _is_whole(n)
        & _is_whole(r)))

def _fisher_log_weight(k, total, n, draws, odds):
    return _log_choices(n, k) + _log_choices(total - n, draws - k) + k * log(odds)


def _fisher_log_pmf(k, total, n, draws, odds):
    total, n, draws = map(count_op, (total, n, draws))
    low, high = hypergeom.support(total, n, draws)
    terms = np.arange(np.max(_known(stats.nchypergeom_fisher, high)) + 1.0)
    is_counted = (terms >= _column(low)) & (terms <= _column(high))
    logarithms = _fisher_log_weight(
        where(is_counted, terms, _column(high)), *map(_column, (total, n, draws, odds)))
    return _fisher_log_weight(k, total, n, draws, odds) - logsumexp(
        where(is_counted, logarithms, -np.inf), -1)


nchypergeom_fisher = _summed(
    stats.nchypergeom_fisher, _fisher_log_pmf,
    lambda total, n, draws, odds: hypergeom.support(total, n, draws),
    lambda total, n, draws, odds: minimum(n, draws),
    lambda total, n, draws, odds: hypergeom.valid(total, n, draws) & (odds > 0), fixed=(0, 1, 2))


def _wallenius_log_pmf(k, total, n, draws, odds):
    total, n, draws = map(count_op, (total, n, draws))
    rest = odds * (n - k) + (total - n - (draws - k))
    is_all = rest == 0  # drawn
    taken = log(where(is_all, 1.0, rest)) + line_integral(
        wallenius, k, draws - k, odds, where(is_all, 1.0, rest))
    return _log_choices(n, k) + _log_choices(total - n, draws - k) + where(is_all, 0.0, taken)


nchypergeom_wallenius = _summed(
    stats.nchypergeom_wallenius, _wallenius_log_pmf,
    lambda total, n, draws, odds: hypergeom.support(total, n, draws),
    lambda total, n, draws, odds: minimum(n, draws),
    lambda total, n, draws, odds: hypergeom.valid(total, n, draws) & (odds > 0), fixed=(0, 1, 2))


def _sum_where(compare):
    """Return a sum of probabilities of a Poisson binomial variable, those whose counts compare."""
    def at(k, *ps):
        terms = np.ones(1)  # coefficients of the product of 1 - p + p x
        for p in ps:
            p = np.expand_dims(p, -1)
            none = 0 * p
            terms = np.concatenate([terms * (1 - p), none], -1) + np.concatenate(
                [none, terms * p], -1)
        is_counted = compare(np.arange(len(ps) + 1.0), np.expand_dims(k, -1))
        return np.sum(where(is_counted, terms, 0.0), -1)

    return at


def _are_probabilities(*ps):
    return functools.reduce(np.logical_and, [(p >= 0) & (p <= 1) for p in ps])


_poisson_binomial_pmf = _sum_where(np.equal)
poisson_binom = Distribution(
    stats.poisson_binom, lambda k, *ps: log(_poisson_binomial_pmf(k, *ps)),
    _sum_where(np.less_equal), _sum_where(np.greater), pdf=_poisson_binomial_pmf,
    support=lambda *ps: (0, len(ps)), inside=0, valid=_are_probabilities)

# ---- Zipf's law up to a count

_TERMS = np.arange(16.0)
_EULER_MACLAURIN = [1 / 12, -1 / 720, 1 / 30240, -1 / 1209600, 1 / 47900160, -691 / 1307674368000]


def _log_harmonic(first, last, a):
    """Return the logarithm of the sum of k**-a between two counts, far terms by an integral."""
    first = minimum(first, last)
    begin = first + len(_TERMS)
    terms = _column(first) + _TERMS
    is_counted = terms <= _column(last)
    powers = exp(-_column(a) * log(where(is_counted, terms, _column(first)) / _column(first)))
    near = np.sum(where(is_counted, powers, 0.0), -1)
    end = maximum(last, begin)
    length = log(end / begin)
    low, high = [exp(-a * log(x / first)) for x in (begin, end)]
    far = begin * low * length * exprel((1 - a) * length) + 0.5 * (low + high)
    low, high = low * a / begin, high * a / end
    for i, factor in enumerate(_EULER_MACLAURIN):
        far = far + factor * (low - high)
        low, high = [
            y * ((a + 2 * i + 1) / x) * ((a + 2 * i + 2) / x)
            for x, y in ((begin, low), (end, high))]
    return log(near + where(last < begin, 0.0, far)) - a * log(first)


def _log_share(first, last):
    """Return the logarithm of the probability between two counts, functions of k and n."""
    def log_share(k, a, n):
        n = count_op(n)
        return _log_harmonic(first(k, n), last(k, n), a) - _log_harmonic(0 * n + 1, n, a)

    return log_share


zipfian = Distribution(
    stats.zipfian, lambda k, a, n: -a * log(k) - _log_harmonic(0 * n + 1, count_op(n), a),
    **complementary(_log_share(lambda k, n: 0 * n + 1, lambda k, n: k),
                    _log_share(lambda k, n: k + 1, lambda k, n: n)),
    support=lambda a, n: (1, n), inside=1,
    valid=lambda a, n: (a >= 0) & (n >= 1) & _is_whole(n), fixed=(1,))

# ---- differences, truncated counts, series


def _skellam_logpmf(k, a, b):
    root = sqrt(a) - sqrt(b)
    return (0.5 * k * log(a / b) - root * root + log_ive(abs(k), 2 * sqrt(a * b)))


def _skellam_cdf(k, a, b):
    is_left = k < 0
    left, right = where(is_left, -k, 1), where(is_left, 0, k)
    return where(
        is_left, chndtr(2 * b, 2 * left, 2 * a), ncx2_sf(2 * a, 2 * (right + 1), 2 * b))


skellam = Distribution(
    stats.skellam, _skellam_logpmf, _skellam_cdf,
    lambda k, a, b: _skellam_cdf(-k - 1, b, a),
    moments={"mean": lambda a, b: a - b, "var": lambda a, b: a + b})
boltzmann = Distribution(
    stats.boltzmann,
    lambda k, rate, n: log(-expm1(-rate)) - log(-expm1(-rate * n)) - rate * k,
    lambda k, rate, n: expm1(-rate * (k + 1)) / expm1(-rate * n),
    lambda k, rate, n: exp(-rate * (k + 1)) * expm1(-rate * (n - k - 1)) / expm1(-rate * n),
    logsf=lambda k, rate, n: log(
        expm1(-rate * _rest(k + 1, n)) / expm1(-rate * n)) - rate * (k + 1),
    support=lambda rate, n: (0, n - 1), inside=0,
    valid=lambda rate, n: (rate > 0) & (n > 0) & _is_whole(n))


def _both_sides_logcdf(k, a):
    is_left = k < 0
    tail = log_expit(a) - a * (where(is_left, -k - 1, k) + 1)
    return where(is_left, tail, log1p(-exp(tail)))


dlaplace = Distribution(
    stats.dlaplace, lambda k, a: log(-expm1(-a)) - log1p(exp(-a)) - a * abs(k),
    logcdf=_both_sides_logcdf, logsf=lambda k, a: _both_sides_logcdf(-k - 1, a))
yulesimon = Distribution(
    stats.yulesimon, lambda k, a: log(a) + betaln(k, a + 1),
    logsf=lambda k, a: log(k) + betaln(k, a + 1), support=(1, np.inf), inside=1,
    moments={"mean": lambda a: where(a > 1, a / (a - 1), np.inf)})


def _log_series(p):
    return log(-log1p(-p))


def _log_series_sf(k, p):
    return power_series_rest(k, p) / -log1p(-p)


logser = Distribution(
    stats.logser, lambda k, p: xlogy(k, p) - log(k) - _log_series(p),
    lambda k, p: 1 - _log_series_sf(k, p), _log_series_sf,
    logsf=lambda k, p: log(power_series_rest(k, p)) - _log_series(p), support=(1, np.inf),
    inside=1, valid=lambda p: (p > 0) & (p < 1),
    moments={"mean": lambda p: -p / (1 - p) / log1p(-p)})
