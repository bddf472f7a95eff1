"""Error functions, distribution functions of normal and t variables, logistic functions (DLMF 7).

Ratios of densities to small probabilities are computed by `erfcx`, which does not underflow.
"""

import math

import numpy as np
import scipy.special as special

from cytape.ops.engine.op_kinds import elementwise
from cytape.ops.special.gamma_functions import betaln
from cytape.ops.special.shape_parameters import no_partial

__all__ = [
    "erf", "erfc", "erfcinv", "erfcx", "erfinv", "expit", "log_expit", "log_ndtr", "logit", "ndtr",
    "ndtri", "stdtr"]

_TWO_BY_ROOT_PI = 2 / math.sqrt(math.pi)
_ROOT_2_PI = math.sqrt(2 * math.pi)

erf = elementwise("ScipyErf", special.erf, lambda y, x: _TWO_BY_ROOT_PI * np.exp(-x * x))
erfc = elementwise("ScipyErfc", special.erfc, lambda y, x: -_TWO_BY_ROOT_PI * np.exp(-x * x))
erfcx = elementwise("ScipyErfcx", special.erfcx, lambda y, x: 2 * x * y - _TWO_BY_ROOT_PI)
erfinv = elementwise("ScipyErfinv", special.erfinv, lambda y, x: np.exp(y * y) / _TWO_BY_ROOT_PI)
erfcinv = elementwise(
    "ScipyErfcinv", special.erfcinv, lambda y, x: -np.exp(y * y) / _TWO_BY_ROOT_PI)

ndtr = elementwise("ScipyNdtr", special.ndtr, lambda y, x: np.exp(-0.5 * x * x) / _ROOT_2_PI)
ndtri = elementwise("ScipyNdtri", special.ndtri, lambda y, x: _ROOT_2_PI * np.exp(0.5 * y * y))
log_ndtr = elementwise(
    "ScipyLogNdtr", special.log_ndtr,
    lambda y, x: math.sqrt(2 / math.pi) / erfcx(-math.sqrt(0.5) * x))


def _t_density(y, df, t):
    return np.exp(-0.5 * ((df + 1) * np.log1p(t * t / df) + np.log(df)) - betaln(0.5 * df, 0.5))


stdtr = elementwise("ScipyStdtr", special.stdtr, no_partial("stdtr", "df"), _t_density)

expit = elementwise("ScipyExpit", special.expit, lambda y, x: y * expit(-x))
log_expit = elementwise("ScipyLogExpit", special.log_expit, lambda y, x: expit(-x))
logit = elementwise("ScipyLogit", special.logit, lambda y, x: 1 / (x * (1 - x)))
