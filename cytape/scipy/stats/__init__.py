"""Probability distributions, differentiable in all parameters, with the names of `scipy.stats`.

Names without derivatives here are SciPy's own.
"""

from typing import Any as _Any

import scipy.stats as _scipys

from cytape.scipy.stats.bounded import (
    arcsine,
    beta,
    loguniform,
    powerlaw,
    triang,
    truncexpon,
    truncnorm,
    uniform,
)
from cytape.scipy.stats.counts import bernoulli, binom, geom, nbinom, planck, poisson, zipf
from cytape.scipy.stats.half_line import (
    betaprime,
    burr,
    burr12,
    chi,
    chi2,
    erlang,
    expon,
    f,
    fisk,
    gamma,
    gengamma,
    genpareto,
    gompertz,
    halfcauchy,
    halflogistic,
    halfnorm,
    invgamma,
    invgauss,
    invweibull,
    levy,
    lognorm,
    lomax,
    maxwell,
    nakagami,
    pareto,
    rayleigh,
    rice,
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
    genlogistic,
    gumbel_l,
    gumbel_r,
    johnsonsu,
    laplace,
    loggamma,
    logistic,
    moyal,
    norm,
    skewnorm,
    t,
    vonmises,
)
from cytape.scipy.stats.summaries import (
    entropy,
    gmean,
    hmean,
    kurtosis,
    moment,
    pmean,
    sem,
    skew,
    variation,
    zmap,
    zscore,
)

__all__ = [
    "arcsine", "bernoulli", "beta", "betaprime", "binom", "burr", "burr12", "cauchy", "chi",
    "chi2", "dirichlet", "entropy", "erlang", "expon", "exponnorm", "f", "fisk", "gamma",
    "genextreme", "gengamma", "genlogistic", "genpareto", "geom", "gmean", "gompertz",
    "gumbel_l", "gumbel_r", "halfcauchy", "halflogistic", "halfnorm", "hmean", "invgamma",
    "invgauss", "invweibull", "johnsonsu", "kurtosis", "laplace", "levy", "loggamma",
    "logistic", "lognorm", "loguniform", "lomax", "maxwell", "moment", "moyal", "multinomial",
    "multivariate_normal", "multivariate_t", "nakagami", "nbinom", "norm", "pareto", "planck",
    "pmean", "poisson", "powerlaw", "rayleigh", "rice", "sem", "skew", "skewnorm", "t",
    "triang", "truncexpon", "truncnorm", "uniform", "variation", "vonmises", "weibull_max",
    "weibull_min", "zipf", "zmap", "zscore"]


def __getattr__(name: str) -> _Any:
    return getattr(_scipys, name)


def __dir__() -> list[str]:
    return sorted({*__all__, *_scipys.__all__})
