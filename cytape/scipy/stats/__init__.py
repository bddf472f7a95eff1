"""Probability distributions, differentiable in all parameters, with the names of `scipy.stats`.

Names without derivatives here are SciPy's own.
"""

from typing import Any as _Any

import scipy.stats as _scipys

from cytape.scipy.stats.multivariate import dirichlet, multivariate_normal
from cytape.scipy.stats.univariate import beta, chi2, gamma, norm, poisson, t

__all__ = ["beta", "chi2", "dirichlet", "gamma", "multivariate_normal", "norm", "poisson", "t"]


def __getattr__(name: str) -> _Any:
    return getattr(_scipys, name)


def __dir__() -> list[str]:
    return sorted({*__all__, *_scipys.__all__})
