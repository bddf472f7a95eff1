"""Integrals and differential equations, differentiable, with the names of `scipy.integrate`.

Names without derivatives here are SciPy's own.
"""

from typing import Any as _Any

import scipy.integrate as _scipys

from cytape.scipy.integrate.boundary_values import solve_bvp as solve_bvp
from cytape.scipy.integrate.initial_values import solve_ivp as solve_ivp
from cytape.scipy.integrate.odeint_adjoint import odeint as odeint
from cytape.scipy.integrate.quadrature import dblquad as dblquad
from cytape.scipy.integrate.quadrature import fixed_quad as fixed_quad
from cytape.scipy.integrate.quadrature import nquad as nquad
from cytape.scipy.integrate.quadrature import quad as quad
from cytape.scipy.integrate.quadrature import quad_vec as quad_vec
from cytape.scipy.integrate.quadrature import tplquad as tplquad
from cytape.scipy.integrate.sampled import cumulative_simpson as cumulative_simpson
from cytape.scipy.integrate.sampled import cumulative_trapezoid as cumulative_trapezoid
from cytape.scipy.integrate.sampled import romb as romb
from cytape.scipy.integrate.sampled import simpson as simpson
from cytape.scipy.integrate.sampled import trapezoid as trapezoid


def __getattr__(name: str) -> _Any:
    return getattr(_scipys, name)


def __dir__() -> list[str]:
    return list(_scipys.__all__)
