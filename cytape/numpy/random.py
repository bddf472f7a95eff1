"""Random numbers, NumPy's own: ``cytape.numpy.random``, as `numpy.random`.

In a function that is traced, or a graph, they are drawn anew in each run; parameters that are
tensors are differentiated. What is not here is ``numpy.random``'s own.
"""

import importlib as _importlib
from typing import Any as _Any

import numpy as _numpy

from cytape.ops.random import *  # noqa: F403
from cytape.ops.random import __all__ as _ours

_LATER = (
    "gumbel", "laplace", "logistic", "lognormal", "multivariate_normal", "pareto", "power", "rand",
    "randint", "randn", "random_sample", "ranf", "rayleigh", "sample", "weibull",
)  # fmt: skip


def __getattr__(name: str) -> _Any:
    if name not in _LATER:
        return getattr(_numpy.random, name)
    ours = getattr(_importlib.import_module("cytape.ops.submodules.distributions"), name)
    globals()[name] = ours
    return ours


def __dir__() -> list[str]:
    return sorted({*_ours, *_LATER, *_numpy.random.__all__})
