"""Probability distributions, differentiable in all parameters, with the names of `scipy.stats`.

Names without derivatives here are SciPy's own.
"""

from typing import Any as _Any

import scipy.stats as _scipys

from cytape.scipy.stats.bounded import beta, truncnorm, uniform
from cytape.scipy.stats.counts import bernoulli, binom, geom, nbinom, poisson
from cytape.scipy.stats.half_line import (
    chi2,
    expon,
    f,
    gamma,
    halfnorm,
    invgamma,
    invgauss,
    lognorm,
    pareto,
    rayleigh,
    weibull_max,
    weibull_min,
)
from cytape.scipy.stats.multivariate import dirichlet, multinomial, multivariate_normal
from cytape.scipy.stats.real_line import (
    cauchy,
    gumbel_l,
    gumbel_r,
    laplace,
    logistic,
    norm,
    skewnorm,
    t,
    vonmises,
)

__all__ = [
    "bernoulli", "beta", "binom", "cauchy", "chi2", "dirichlet", "expon", "f", "gamma", "geom",
    "gumbel_l", "gumbel_r", "halfnorm", "invgamma", "invgauss", "laplace", "logistic", "lognorm",
    "multinomial", "multivariate_normal", "nbinom", "norm", "pareto", "poisson", "rayleigh",
    "skewnorm", "t", "truncnorm", "uniform", "vonmises", "weibull_max", "weibull_min"]


def __getattr__(name: str) -> _Any:
    return getattr(_scipys, name)


def __dir__() -> list[str]:
    return sorted({*__all__, *_scipys.__all__})
