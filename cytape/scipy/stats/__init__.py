"""Probability distributions, differentiable in all parameters, with the names of `scipy.stats`.

Names without derivatives here are SciPy's own.
"""

from typing import Any as _Any

import scipy.stats as _scipys

from cytape.scipy.stats.bounded import beta, loguniform, powerlaw, triang, truncnorm, uniform
from cytape.scipy.stats.counts import bernoulli, binom, geom, nbinom, poisson
from cytape.scipy.stats.half_line import (
    chi,
    chi2,
    erlang,
    expon,
    f,
    fisk,
    gamma,
    genpareto,
    halfcauchy,
    halfnorm,
    invgamma,
    invgauss,
    lognorm,
    lomax,
    maxwell,
    pareto,
    rayleigh,
    weibull_max,
    weibull_min,
)
from cytape.scipy.stats.multivariate import (
    dirichlet,
    multinomial,
    multivariate_normal,
    multivariate_t,
)
from cytape.scipy.stats.real_line import (
    cauchy,
    exponnorm,
    genextreme,
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
    "bernoulli", "beta", "binom", "cauchy", "chi", "chi2", "dirichlet", "erlang", "expon",
    "exponnorm", "f", "fisk", "gamma", "genextreme", "genpareto", "geom", "gumbel_l", "gumbel_r",
    "halfcauchy", "halfnorm", "invgamma", "invgauss", "laplace", "logistic", "lognorm",
    "loguniform", "lomax", "maxwell", "multinomial", "multivariate_normal", "multivariate_t",
    "nbinom", "norm", "pareto", "poisson", "powerlaw", "rayleigh", "skewnorm", "t", "triang",
    "truncnorm", "uniform", "vonmises", "weibull_max", "weibull_min"]


def __getattr__(name: str) -> _Any:
    return getattr(_scipys, name)


def __dir__() -> list[str]:
    return sorted({*__all__, *_scipys.__all__})
