"""Optimisation and root finding, with exact derivatives, by the names of `scipy.optimize`.

Names without derivatives here are SciPy's own.
"""

from typing import Any as _Any

import scipy.optimize as _scipys

from cytape.scipy.optimize.minimization import minimize

__all__ = ["minimize"]


def __getattr__(name: str) -> _Any:
    return getattr(_scipys, name)


def __dir__() -> list[str]:
    return sorted({*__all__, *_scipys.__all__})
