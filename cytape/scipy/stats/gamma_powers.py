"""Distributions of powers of gamma variables."""

import numpy as np
import scipy.stats as stats

from cytape.ops.elementwise import abs, exp, log, log1p, where
from cytape.ops.probabilities.log_probabilities import log_gammaincc
from cytape.ops.special import gammainc, gammaincc, gammainccinv, gammaincinv, gammaln
from cytape.scipy.stats.distribution import (
    POSITIVE,
    Distribution,
    either,
    log_gamma_cdf,
    not_far,
    power_density,
)
from cytape.scipy.stats.real_line import loggamma_quantile

__all__ = ["gengamma", "halfgennorm"]

_power_of_gamma = power_density(
    lambda a, c: c * a - 1, lambda z, a, c: log(abs(c)) - gammaln(a) - z**c)


def _gengamma_density(of_power, at_end):
    def density(z, a, c):
        is_end = (c < 0) & (z == 0)
        return where(is_end, at_end, of_power(where(is_end, 1.0, z), a, c))

    return density


def gamma_of_power(a, z, c, power):
    """Return gammainc(a, z**c), of small z by the power a c of z, which has derivatives at 0."""
    with np.errstate(over="ignore"):
        is_small = z**c < 1e-17
    return either(
        is_small, lambda: where(is_small, z, 1.0)**power * exp(-gammaln(a + 1)),
        lambda: gammainc(a, not_far(where(is_small, 1.0, z), c)**c))


def _by_sign(positive, negative):
    """Return a function of `gengamma`, whose power z**c decreases for a negative c."""
    return lambda z, a, c: either(
        c > 0, lambda: positive(z, a, c), lambda: negative(z, a, c))


def _gengamma_quantile(positive, negative):
    return lambda q, a, c: exp(either(
        c > 0, lambda: positive(q, a), lambda: negative(q, a)) / c)


def _log_lower(q, a):
    return loggamma_quantile(gammaincinv, a, q, log(q))


def _log_upper(q, a):
    return loggamma_quantile(gammainccinv, a, q, log1p(-q))


_GENGAMMA = [
    [lambda z, a, c: gamma_of_power(a, z, c, a * c),
     lambda z, a, c: gammaincc(a, not_far(z, c)**c)],
    [lambda z, a, c: log_gamma_cdf(a, not_far(z, c)**c, c * log(z)),
     lambda z, a, c: log_gammaincc(a, z**c)]]
gengamma = Distribution(  # type: ignore[misc]
    stats.gengamma, _gengamma_density(_power_of_gamma[0], -np.inf),
    *[_by_sign(*pair[::step]) for pair in _GENGAMMA for step in (1, -1)],
    pdf=_gengamma_density(
        lambda z, a, c: _power_of_gamma[1](not_far(z, c), a, c), 0.0),
    ppf=_gengamma_quantile(_log_lower, _log_upper), isf=_gengamma_quantile(_log_upper, _log_lower),
    support=POSITIVE, open_ends="probabilities",
    valid=lambda a, c: (a > 0) & (c != 0) & (abs(c) < np.inf))


def _halfgennorm_cdf(z, beta):
    return gamma_of_power(1 / beta, z, beta, 1)


def _halfgennorm_logsf(z, beta):
    is_small = z**beta < 1e-17
    return either(
        is_small, lambda: log1p(-_halfgennorm_cdf(where(is_small, z, 0.0), beta)),
        lambda: log_gammaincc(1 / beta, where(is_small, 1.0, z)**beta))


def _halfgennorm_ppf(q, beta):
    is_end = q == 0  # with a derivative there
    return where(is_end, q * exp(gammaln(1 + 1 / beta)), gengamma.functions["ppf"](
        where(is_end, 0.5, q), 1 / beta, beta))


halfgennorm = Distribution(
    stats.halfgennorm, lambda z, beta: log(beta) - gammaln(1 / beta) - z**beta, _halfgennorm_cdf,
    logcdf=lambda z, beta: gengamma.functions["logcdf"](z, 1 / beta, beta),
    logsf=_halfgennorm_logsf, sf=lambda z, beta: exp(_halfgennorm_logsf(not_far(z, beta), beta)),
    pdf=lambda z, beta: exp(log(beta) - gammaln(1 / beta) - not_far(z, beta)**beta),
    ppf=_halfgennorm_ppf,
    isf=lambda q, beta: gengamma.functions["isf"](q, 1 / beta, beta), support=POSITIVE)
