"""Noncentral chi-squared and F distributions as Poisson mixtures, by sums of logarithms.

The sums have derivatives in degrees of freedom. They are over 221 counts around the largest term,
with steps of several counts where the Poisson distribution is wide.
"""

import math

import numpy as np

from cytape.ops.comparisons import floor
from cytape.ops.elementwise import log, log1p, maximum, minimum, sqrt, where
from cytape.ops.probabilities.log_probabilities import (
    log_gammainc,
    log_gammaincc,
    log_odds,
    log_oddsc,
)
from cytape.ops.special import gammaln, logsumexp, xlogy
from cytape.ops.special.gamma_functions import betaln

_SPAN = np.arange(-110.0, 111.0)


def _mixture(log_term, mean, centre, *given):
    """Return the logarithm of the mean of exp(log_term(count, *given))."""
    mean = where(mean == 0, mean + 1e-290, mean)  # with a slope at 0
    step = maximum(floor(sqrt(centre) / 8), 1.0)
    mean, centre, step, *given = [np.expand_dims(x, -1) for x in (mean, centre, step, *given)]
    counts = floor(centre) + step * _SPAN
    is_counted = counts >= 0
    counts = where(is_counted, counts, 0.0)
    logs = xlogy(counts, mean) - mean - gammaln(counts + 1) + log_term(counts, *given)
    return logsumexp(log(step) + where(is_counted, logs, -np.inf), -1)


def _largest(mean, a, y):
    """Return the count of the largest term of the density of noncentral chi-squared."""
    return maximum(0.5 * (sqrt((1 - a) * (1 - a) + 4 * mean * y) + 1 - a), 0.0)


def _chi(log_term, select):
    def of_chi(x, df, nc):
        a, y, mean = 0.5 * df, 0.5 * x, 0.5 * nc
        return _mixture(log_term, mean, select(_largest(mean, a, y), mean), a, y)

    return of_chi


def _first(largest, _):
    return largest


log_chi_density = _chi(
    lambda k, a, y: xlogy(a + k - 1, y) - y - gammaln(a + k) - math.log(2), _first)
log_chi_below = _chi(lambda k, a, y: log_gammainc(a + k, y), minimum)
log_chi_above = _chi(lambda k, a, y: log_gammaincc(a + k, y), maximum)


def _f(log_term, select):
    def of_f(x, dfn, dfd, nc):
        a, b, z, mean = 0.5 * dfn, 0.5 * dfd, dfn / dfd * x, 0.5 * nc
        y = (a + b + mean) * z / (1 + z)  # the largest term is that of a similar chi-squared one
        return _mixture(log_term, mean, select(_largest(mean, a, y), mean), a, b, z)

    return of_f


_log_f = _f(lambda k, a, b, z: (
    xlogy(a + k, z) - (a + b + k) * log1p(z) - betaln(a + k, b)), _first)


def log_f_density(x, dfn, dfd, nc):
    """Return the logarithm of the density."""
    return _log_f(x, dfn, dfd, nc) - log(x)


log_f_below, log_f_above = _f(
    lambda k, a, b, z: log_odds(a + k, b, z), minimum), _f(
    lambda k, a, b, z: log_oddsc(a + k, b, z), maximum)
