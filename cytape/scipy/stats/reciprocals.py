"""Distributions of reciprocals of variables."""

import numpy as np
import scipy.stats as stats

from cytape.ops.elementwise import exp, log, log1p, logaddexp, where
from cytape.ops.probabilities.log_probabilities import log_mass
from cytape.ops.special import log_ndtr, ndtr, ndtri_exp
from cytape.scipy.stats.distribution import (
    HALF_LOG_2PI,
    POSITIVE,
    Distribution,
    complementary,
    either,
)
from cytape.scipy.stats.half_line import invgauss

__all__ = ["alpha", "recipinvgauss"]


def _alpha_logsf(z, a):
    return log_mass(a - 1 / z, a, 1 / z) - log_ndtr(a)


def _alpha_sf(z, a):
    q = 1 - ndtr(a - 1 / z) / ndtr(a)
    is_tail = q < 1e-3
    return either(
        is_tail, lambda: exp(_alpha_logsf(where(is_tail, z, 1.0), a)),
        lambda: where(is_tail, 0.5, q))


def _alpha_near(p, a):
    """Return the small reciprocal of a quantile, by Newton's method in logarithms."""
    log_p = log(p) + log_ndtr(a)
    z = exp(log_p + 0.5 * a * a + HALF_LOG_2PI)
    for _ in range(2):
        log_q = log_mass(a - z, a, z)
        z = z * exp((log_p - log_q) * exp(log_q + 0.5 * (a - z)**2 + HALF_LOG_2PI) / z)
    return z


def _alpha_quantile(q, p, a):
    """Return the quantile of a probability q and its complement p, in the nearer tail."""
    is_left, is_end = q < 0.5, p == 0
    left, right = [log(where(is_used, x, 0.5)) + log_ndtr(a) for is_used, x in (
        (is_left, q), (~is_left & ~is_end, p))]
    is_near = right + 0.5 * a * a + log1p(a) < -8
    far = where(is_left, a - ndtri_exp(left), a + ndtri_exp(logaddexp(log_ndtr(-a), right)))
    rest = either(is_near, lambda: _alpha_near(
        where(is_near, p, 1e-5), where(is_near, a, 0.0)), lambda: where(is_near, 1.0, far))
    return where(is_end, np.inf, 1 / rest)


alpha = Distribution(
    stats.alpha, lambda z, a: -2 * log(z) - 0.5 * (a - 1 / z)**2 - HALF_LOG_2PI - log_ndtr(a),
    lambda z, a: ndtr(a - 1 / z) / ndtr(a),
    _alpha_sf,
    **complementary(lambda z, a: log_ndtr(a - 1 / z) - log_ndtr(a), _alpha_logsf),
    ppf=lambda q, a: _alpha_quantile(q, 1 - q, a), isf=lambda q, a: _alpha_quantile(1 - q, q, a),
    support=POSITIVE, open_ends=True)
recipinvgauss = Distribution(
    stats.recipinvgauss,
    lambda z, mu: -((1 - mu * z) / mu)**2 / (2 * z) - 0.5 * log(z) - HALF_LOG_2PI,
    logcdf=lambda z, mu: invgauss.functions["logsf"](1 / z, mu),
    logsf=lambda z, mu: invgauss.functions["logcdf"](1 / z, mu),
    support=POSITIVE, open_ends=True)
