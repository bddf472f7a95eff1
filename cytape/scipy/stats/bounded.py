"""Distributions on an interval."""

import math

import scipy.stats as stats

from cytape.ops.elementwise import (
    arctan2,
    cos,
    exp,
    expm1,
    log,
    log1p,
    logaddexp,
    maximum,
    sin,
    sqrt,
    where,
)
from cytape.ops.probabilities.log_probabilities import log_betainc, log_betaincc
from cytape.ops.special import (
    betainc,
    betaincc,
    betainccinv,
    betaincinv,
    betaln,
    log_ndtr,
    ndtr,
    ndtri_exp,
    xlog1py,
    xlogy,
)
from cytape.ops.special.incomplete_functions import beta_density
from cytape.scipy.stats.distribution import HALF_LOG_2PI, Distribution

__all__ = [
    "arcsine", "beta", "loguniform", "powerlaw", "triang", "truncexpon", "truncnorm", "uniform"]

beta = Distribution(
    stats.beta, lambda z, a, b: xlogy(a - 1, z) + xlog1py(b - 1, -z) - betaln(a, b),
    lambda z, a, b: betainc(a, b, z), lambda z, a, b: betaincc(a, b, z),
    lambda z, a, b: log_betainc(a, b, z), lambda z, a, b: log_betaincc(a, b, z),
    pdf=lambda z, a, b: beta_density(a, b, z), ppf=lambda q, a, b: betaincinv(a, b, q),
    isf=lambda q, a, b: betainccinv(a, b, q), support=(0, 1), moments={
        "mean": lambda a, b: a / (a + b),
        "var": lambda a, b: a * b / ((a + b)**2 * (a + b + 1))})
uniform = Distribution(
    stats.uniform, lambda z: 0 * z, lambda z: z, lambda z: 1 - z, log, lambda z: log1p(-z),
    ppf=lambda q: q, isf=lambda q: 1 - q, support=(0, 1), open_ends="probabilities",
    moments={"mean": lambda: 0.5, "var": lambda: 1 / 12, "entropy": lambda: 0.0})


def _log_ratio(b, a):
    """Return log(b / a) without overflow, and without cancellation for b next to a."""
    is_near = b < 2 * a
    near = where(is_near, b, a)
    return where(is_near, log1p((near - a) / a), log(b) - log(a))


loguniform = Distribution(
    stats.loguniform, lambda z, a, b: -log(z) - log(_log_ratio(b, a)),
    lambda z, a, b: _log_ratio(z, a) / _log_ratio(b, a),
    lambda z, a, b: _log_ratio(b, z) / _log_ratio(b, a),
    ppf=lambda q, a, b: exp(log(a) + q * _log_ratio(b, a)),
    isf=lambda q, a, b: exp(log(b) - q * _log_ratio(b, a)),
    support=lambda a, b: (a, b), inside=lambda a, b: exp(0.5 * (log(a) + log(b))),
    valid=lambda a, b: (a > 0) & (b > a))
powerlaw = Distribution(
    stats.powerlaw, lambda z, a: log(a) + xlogy(a - 1, z), lambda z, a: z**a,
    lambda z, a: -expm1(a * log(z)), logcdf=lambda z, a: a * log(z),
    ppf=lambda q, a: q**(1 / a), isf=lambda q, a: exp(log1p(-q) / a), support=(0, 1),
    open_ends="probabilities", moments={
        "mean": lambda a: a / (a + 1), "var": lambda a: a / (a + 2) / (a + 1)**2})


def _triangular_density(z, c):
    is_left = (z < c) | (c == 1)
    return where(
        is_left, 2 * z / where(is_left, c, 0.5), 2 * (1 - z) / where(is_left, 0.5, 1 - c))


def _triangular_probability(z, c, p, d, excess):
    """Return the probability below z, without cancellation; p is 1 - z, d is 1 - c."""
    is_left = (excess < 0) | (d == 0)
    d = where(is_left, 0.5, d)
    rest = p * p / d
    return where(
        is_left, z * z / where(is_left, c, 0.5),
        where(rest < 0.5, 1 - rest, (excess + z * p) / d))


def _triangular_quantile(q, c, p):
    """Return the quantile of a probability q and its complement p."""
    is_left = q < c
    product = where(is_left, q * c, 0.25)
    rest = where(is_left, 0.25, p * (1 - c))
    return where(is_left, sqrt(product), (q + c * p) / (1 + sqrt(rest)))


triang = Distribution(
    stats.triang, lambda z, c: log(_triangular_density(z, c)),
    lambda z, c: _triangular_probability(z, c, 1 - z, 1 - c, z - c),
    lambda z, c: _triangular_probability(1 - z, 1 - c, z, c, c - z), pdf=_triangular_density,
    ppf=lambda q, c: _triangular_quantile(q, c, 1 - q),
    isf=lambda q, c: _triangular_quantile(1 - q, c, q), support=(0, 1),
    valid=lambda c: (c >= 0) & (c <= 1), moments={
        "mean": lambda c: (c + 1) / 3, "var": lambda c: (1 - c + c * c) / 18})


def _log_mass(a, b):
    """Return the logarithm of the normal probability of a < x < b, without cancellation."""
    is_right = a > 0  # the other tail has the same
    a, b = where(is_right, -b, a), where(is_right, -a, b)
    has_middle = b > 0
    left = where(has_middle, -1.0, b)
    last = log_ndtr(left)
    first = log_ndtr(where(has_middle, -2.0, maximum(a, -1e18)))  # finite, as is its slope
    in_tail = last + log1p(-exp(first - last))
    low, high = where(has_middle, a, -1.0), where(has_middle, b, 1.0)
    return where(has_middle, log1p(-ndtr(low) - ndtr(-high)), in_tail)


def _truncated_quantile(log_q, log_p, a, b):
    """Return the quantile of a probability q and its complement p, in the nearer tail."""
    mass, is_left = _log_mass(a, b), a < 0
    left, right = where(is_left, a, -1.0), where(is_left, 1.0, b)
    return where(
        is_left, ndtri_exp(logaddexp(log_ndtr(left), log_q + mass)),
        -ndtri_exp(logaddexp(log_ndtr(-right), log_p + mass)))


def _truncated_logcdf(z, a, b):
    return _log_mass(a, z) - _log_mass(a, b)


def _truncated_logsf(z, a, b):
    return _log_mass(z, b) - _log_mass(a, b)


truncnorm = Distribution(
    stats.truncnorm, lambda z, a, b: -0.5 * z * z - HALF_LOG_2PI - _log_mass(a, b),
    lambda z, a, b: exp(_truncated_logcdf(z, a, b)), lambda z, a, b: exp(_truncated_logsf(z, a, b)),
    _truncated_logcdf, _truncated_logsf,
    ppf=lambda q, a, b: _truncated_quantile(log(q), log1p(-q), a, b),
    isf=lambda q, a, b: _truncated_quantile(log1p(-q), log(q), a, b),
    support=lambda a, b: (a, b), inside=lambda a, b: _between(a, b), open_ends="probabilities",
    valid=lambda a, b: a < b)


def _between(a, b):
    """Return a point between bounds, one or both of which may be infinite."""
    has_a, has_b = a > -1e300, b < 1e300
    low, high = where(has_a, a, 0.0), where(has_b, b, 0.0)
    return where(
        has_a, where(has_b, 0.5 * low + 0.5 * high, low + 1), where(has_b, high - 1, 0.0))


arcsine = Distribution(
    stats.arcsine, lambda z: -0.5 * (log(z) + log1p(-z)) - math.log(math.pi),
    lambda z: 2 / math.pi * arctan2(sqrt(z), sqrt(1 - z)),
    lambda z: 2 / math.pi * arctan2(sqrt(1 - z), sqrt(z)),
    ppf=lambda q: sin(0.5 * math.pi * q)**2,
    isf=lambda q: where(q > 0.5, sin(0.5 * math.pi * (1 - q))**2, cos(0.5 * math.pi * q)**2),
    support=(0, 1), open_ends="probabilities")


def _exponential_quantile(q, p, b):
    """Return the quantile of a probability q and its complement p, up to the end b."""
    mass = -q * expm1(-b)
    is_left, is_wide = mass < 0.5, b > 80
    q, p = where(is_left, 0.5, q), where(is_left, 0.5, p)
    narrow, wide = where(is_wide, 80.0, b), where(is_wide, b, 80.0)
    return -where(is_left, log1p(-where(is_left, mass, 0.0)), where(
        is_wide, logaddexp(log(where(is_wide, p, 0.5)), log(q) - wide),
        log(p + q * exp(-narrow))))


truncexpon = Distribution(
    stats.truncexpon, lambda z, b: -z - log(-expm1(-b)), lambda z, b: expm1(-z) / expm1(-b),
    lambda z, b: exp(-z) * expm1(z - b) / expm1(-b),
    ppf=lambda q, b: _exponential_quantile(q, 1 - q, b),
    isf=lambda q, b: _exponential_quantile(1 - q, q, b), support=lambda b: (0.0, b),
    inside=lambda b: 0.5 * b, open_ends="probabilities")
