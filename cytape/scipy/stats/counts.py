"""Distributions of counts. Quantiles are steps and have no derivatives in the parameters."""

import numpy as np
import scipy.stats as stats

from cytape.ops.elementwise import exp, expm1, log, log1p, where
from cytape.ops.probabilities.log_probabilities import (
    log_betainc,
    log_betaincc,
    log_gammainc,
    log_gammaincc,
)
from cytape.ops.special import (
    betainc,
    betaincc,
    gammainc,
    gammaincc,
    gammaln,
    xlog1py,
    xlogy,
    zeta,
)
from cytape.ops.special.incomplete_functions import beta_density, gamma_density
from cytape.scipy.stats.distribution import Distribution

__all__ = ["bernoulli", "binom", "geom", "nbinom", "planck", "poisson", "zipf"]

_COUNTS = (0, np.inf)

poisson = Distribution(
    stats.poisson, lambda k, mu: xlogy(k, mu) - gammaln(k + 1) - mu,
    lambda k, mu: gammaincc(k + 1, mu), lambda k, mu: gammainc(k + 1, mu),
    lambda k, mu: log_gammaincc(k + 1, mu), lambda k, mu: log_gammainc(k + 1, mu),
    pdf=lambda k, mu: gamma_density(k + 1, mu), support=_COUNTS, inside=1,
    moments={"mean": lambda mu: mu, "var": lambda mu: mu})


def _rest(k, n):
    """Return n - k, positive also beyond the support."""
    return where(k < n, n - k, 1)


binom = Distribution(
    stats.binom, lambda k, n, p: (
        gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1) + xlogy(k, p) + xlog1py(n - k, -p)),
    lambda k, n, p: betaincc(k + 1, _rest(k, n), p), lambda k, n, p: betainc(k + 1, _rest(k, n), p),
    lambda k, n, p: log_betaincc(k + 1, _rest(k, n), p),
    lambda k, n, p: log_betainc(k + 1, _rest(k, n), p),
    pdf=lambda k, n, p: beta_density(k + 1, n - k + 1, p) / (n + 1),
    support=lambda n, p: (0, n), inside=0,
    valid=lambda n, p: (n >= 0) & (np.floor(n) == n) & (p >= 0) & (p <= 1),
    moments={"mean": lambda n, p: n * p, "var": lambda n, p: n * p * (1 - p)})
bernoulli = Distribution(
    stats.bernoulli, lambda k, p: xlogy(k, p) + xlog1py(1 - k, -p),
    lambda k, p: where(k < 1, 1 - p, 1.0), lambda k, p: where(k < 1, p, 0.0),
    pdf=lambda k, p: where(k < 1, 1 - p, p), support=(0, 1), inside=0,
    valid=lambda p: (p >= 0) & (p <= 1),
    moments={"mean": lambda p: p, "var": lambda p: p * (1 - p)})
nbinom = Distribution(
    stats.nbinom, lambda k, n, p: (
        gammaln(n + k) - gammaln(k + 1) - gammaln(n) + n * log(p) + xlog1py(k, -p)),
    lambda k, n, p: betainc(n, k + 1, p), lambda k, n, p: betaincc(n, k + 1, p),
    lambda k, n, p: log_betainc(n, k + 1, p), lambda k, n, p: log_betaincc(n, k + 1, p),
    pdf=lambda k, n, p: beta_density(n, k + 1, p) * p / (n + k), support=_COUNTS, inside=1,
    valid=lambda n, p: (n > 0) & (p > 0) & (p <= 1),
    moments={"mean": lambda n, p: n * (1 - p) / p, "var": lambda n, p: n * (1 - p) / (p * p)})
geom = Distribution(
    stats.geom, lambda k, p: xlog1py(k - 1, -p) + log(p), lambda k, p: -expm1(k * log1p(-p)),
    lambda k, p: exp(k * log1p(-p)), logsf=lambda k, p: k * log1p(-p), support=(1, np.inf),
    inside=1, valid=lambda p: (p > 0) & (p <= 1),
    moments={"mean": lambda p: 1 / p, "var": lambda p: (1 - p) / (p * p)})
planck = Distribution(
    stats.planck, lambda k, rate: log(-expm1(-rate)) - rate * k,
    lambda k, rate: -expm1(-rate * (k + 1)), lambda k, rate: exp(-rate * (k + 1)),
    logsf=lambda k, rate: -rate * (k + 1), support=_COUNTS, inside=1, valid=lambda rate: rate > 0)
zipf = Distribution(
    stats.zipf, lambda k, a: -a * log(k) - log(zeta(a, 1)),
    lambda k, a: 1 - zeta(a, k + 1) / zeta(a, 1), lambda k, a: zeta(a, k + 1) / zeta(a, 1),
    support=(1, np.inf), inside=1, valid=lambda a: a > 1)
