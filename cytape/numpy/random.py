"""Random numbers, NumPy's own: ``cytape.numpy.random``, as `numpy.random`.

In a function that is traced, or a graph, they are drawn anew in each run; parameters that are
tensors are differentiated. What is not here is ``numpy.random``'s own.
"""

import importlib as _importlib
from typing import Any as _Any

import numpy as _numpy

from cytape.numpy.own_names import numpys as _numpys
from cytape.ops.random import *  # noqa: F403
from cytape.ops.random import __all__ as _ours

_LATER = {
    **dict.fromkeys([
        "bytes", "gumbel", "laplace", "logistic", "lognormal", "multivariate_normal", "pareto",
        "power", "rand", "randint", "randn", "random_integers", "random_sample", "ranf", "rayleigh",
        "sample", "shuffle", "standard_cauchy", "triangular", "weibull"], "distributions"),
    **dict.fromkeys([
        "beta", "chisquare", "dirichlet", "f", "geometric", "hypergeometric", "logseries",
        "multinomial", "negative_binomial", "noncentral_chisquare", "noncentral_f", "standard_t",
        "vonmises", "wald", "zipf"], "undifferentiated_draws"),
}  # fmt: skip


def __getattr__(name: str) -> _Any:
    if name not in _LATER:
        return _numpys(_numpy.random, name)
    room = _importlib.import_module(f"cytape.ops.submodules.{_LATER[name]}")
    ours = globals()[name] = getattr(room, name)
    return ours


def __dir__() -> list[str]:
    return sorted({*_ours, *_LATER, *_numpy.random.__all__})
