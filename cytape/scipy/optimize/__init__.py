"""Optimisation and root finding, with exact derivatives, by the names of `scipy.optimize`.

Names without derivatives here are SciPy's own.
"""

from types import FunctionType as _FunctionType
from typing import Any as _Any

import scipy.optimize as _scipys

from cytape.ops.calls.without_derivatives import without_derivatives as _without_derivatives
from cytape.scipy.optimize.fitting import (
    curve_fit,
    least_squares,
    linear_sum_assignment,
    lsq_linear,
    nnls,
)
from cytape.scipy.optimize.minimization import minimize, minimize_scalar
from cytape.scipy.optimize.roots import root
from cytape.scipy.optimize.scalar_roots import (
    bisect,
    brenth,
    brentq,
    fixed_point,
    newton,
    ridder,
    root_scalar,
    toms748,
)

__all__ = [
    "bisect", "brenth", "brentq", "curve_fit", "fixed_point", "least_squares",
    "linear_sum_assignment", "lsq_linear", "minimize", "minimize_scalar", "newton", "nnls",
    "ridder", "root", "root_scalar", "toms748"]


def __getattr__(name: str) -> _Any:
    found = getattr(_scipys, name)
    return _without_derivatives(found) if isinstance(found, _FunctionType) else found


def __dir__() -> list[str]:
    return sorted({*__all__, *_scipys.__all__})
