"""Integrals and differential equations, differentiable, with the names of `scipy.integrate`.

Names without derivatives here are SciPy's own.
"""

from typing import Any as _Any

import scipy.integrate as _scipys

from cytape.scipy.integrate.initial_values import solve_ivp as solve_ivp
from cytape.scipy.integrate.odeint_adjoint import odeint as odeint


def __getattr__(name: str) -> _Any:
    return getattr(_scipys, name)


def __dir__() -> list[str]:
    return list(_scipys.__all__)
