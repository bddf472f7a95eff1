"""Error functions, normal distribution, density of t variables, logistic functions (DLMF 7).

Ratios of densities to small probabilities are computed by `erfcx`, which does not underflow.
"""

import math

import numpy as np

import cytape.ops.special_kernels.special_ufuncs as special
from cytape.ops.engine.op_kinds import elementwise
from cytape.ops.neural.activation_functions import sigmoid
from cytape.ops.special.elementary_functions import inside
from cytape.ops.special.gamma_functions import betaln
from cytape.ops.special.shape_parameters import is_complex

__all__ = [
    "erf", "erfc", "erfcinv", "erfcx", "erfinv", "expit", "log_expit", "log_ndtr", "logit", "ndtr",
    "ndtri", "ndtri_exp"]

_TWO_BY_ROOT_PI = 2 / math.sqrt(math.pi)
_ROOT_2PI = math.sqrt(2 * math.pi)


def erfcx_partial(y, x):
    """Return 2 x y - 2 / sqrt(pi), for large x by its asymptotic series (DLMF 7.12.1)."""
    is_large = x > 15
    if is_complex(x):
        is_large = (np.abs(x) > 15) & (np.real(x) > -0.5 * np.abs(np.imag(x)))
    q = 1 / np.square(np.where(is_large, x, 1e4))
    series = 1
    for k in range(9, 0, -1):
        series = 1 - (k + 0.5) * q * series
    return np.where(is_large, -0.5 * _TWO_BY_ROOT_PI * q * series, 2 * x * y - _TWO_BY_ROOT_PI)


# An op, as its partial is not NaN (0 times infinity) at infinity.
_gaussian = elementwise(
    "ScipyGaussian", lambda x: np.exp(-x * x), lambda y, x: np.where(y == 0, 0, -2 * x) * y)
_normal_density = elementwise(
    "ScipyNormalDensity", lambda x: np.exp(-0.5 * x * x) / _ROOT_2PI,
    lambda y, x: np.where(y == 0, 0, -x) * y)


def quantile_slope(q):
    """Return the derivative of the normal quantile q in the probability."""
    return _ROOT_2PI * np.exp(0.5 * q * q)


def _log_ndtr_slope(x):
    """Return density / probability, left of 0 by `erfcx`, which does not underflow."""
    is_left = x < 0
    left, right = np.where(is_left, x, 0), np.where(is_left, 0, x)
    with np.errstate(divide="ignore", over="ignore"):  # at infinity, and of squares
        return np.where(
            is_left, math.sqrt(2 / math.pi) / special.erfcx(-math.sqrt(0.5) * left),
            np.exp(-0.5 * right * right) / _ROOT_2PI / special.ndtr(right))


_CURVATURE = [-1, 1, -6, 50, -518, 6354, -89782]


def _log_ndtr_curvature(s, x):
    """Return -s (x + s); far left by an asymptotic series in 1 / x**2, as x and s cancel."""
    is_far = x < -30
    q = 1 / np.square(np.where(is_far, x, -30))
    near = np.where(is_far | (s == 0), 0, x)  # at infinity s is 0
    series = 0
    for coefficient in reversed(_CURVATURE):
        series = series * q + coefficient
    return np.where(is_far, series, -s * (near + s))


log_ndtr_slope = elementwise("ScipyLogNdtrSlope", _log_ndtr_slope, _log_ndtr_curvature)
erf = elementwise("ScipyErf", special.erf, lambda y, x: _TWO_BY_ROOT_PI * _gaussian(x))
erfc = elementwise("ScipyErfc", special.erfc, lambda y, x: -_TWO_BY_ROOT_PI * _gaussian(x))
erfcx = elementwise("ScipyErfcx", special.erfcx, erfcx_partial)
erfinv = elementwise("ScipyErfinv", special.erfinv, lambda y, x: np.exp(y * y) / _TWO_BY_ROOT_PI)
erfcinv = elementwise(
    "ScipyErfcinv", special.erfcinv, lambda y, x: -np.exp(y * y) / _TWO_BY_ROOT_PI)

ndtr = elementwise("ScipyNdtr", special.ndtr, lambda y, x: _normal_density(x))
ndtri = elementwise("ScipyNdtri", special.ndtri, lambda y, x: quantile_slope(y))
log_ndtr = elementwise("ScipyLogNdtr", special.log_ndtr, lambda y, x: log_ndtr_slope(x))
ndtri_exp = elementwise(
    "ScipyNdtriExp", special.ndtri_exp, lambda y, x: 1 / log_ndtr_slope(y))


def t_log_density(t, df):
    """Return the log density of Student's t.

    For large df it is expanded in 1 / df, because terms whose sum is small would cancel; an
    infinite df gives the normal distribution.
    """
    u = t / np.sqrt(df)
    is_large, is_far = (df > 200) & (np.abs(u) < 0.07), np.abs(u) > 1
    near, far = np.where(is_far, 0, u), np.where(is_far, u, 1)  # squares of others overflow
    v, df = 1 / np.where(is_large, df, np.inf), np.where(is_large, 1, df)
    small = np.square(np.where(is_large, t, 0))  # finite
    gammas = v * (-1 / 4 + v * v * (1 / 24 - v * v / 20))  # of df / 2 (DLMF 5.11.1)
    powers = 0
    for k in range(7, 0, -1):
        powers = -small * v * (powers + 1 / k - small / (k + 1))
    fall = np.where(is_far, 2 * np.log(np.abs(far)) + np.log1p(np.square(1 / far)),
                    np.log1p(np.square(near)))
    return np.where(
        is_large, gammas + 0.5 * (powers - small) - math.log(_ROOT_2PI),
        -0.5 * ((df + 1) * fall + np.log(df)) - betaln(0.5 * df, 0.5))


expit = elementwise("ScipyExpit", special.expit, lambda y, x: y * sigmoid(-x))
log_expit = elementwise("ScipyLogExpit", special.log_expit, lambda y, x: sigmoid(-x))
logit = elementwise("ScipyLogit", special.logit, lambda y, x: inside(y == y, 1 / (x * (1 - x))))
