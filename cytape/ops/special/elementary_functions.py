"""Powers, logarithms, functions of degrees, transformations of Box and Cox, entropies, losses.

`round` is a step function: its gradient is None.
"""

import math

import numpy as np

import cytape.ops.special_kernels.quotient_ufuncs as quotient_ufuncs
import cytape.ops.special_kernels.special_ufuncs as special
from cytape.ops.adjoints.safe_quotients import power_in_base
from cytape.ops.engine.op_kinds import elementwise

__all__ = [
    "boxcox", "boxcox1p", "cbrt", "cosdg", "cosm1", "cotdg", "entr", "exp10", "exp2", "expm1",
    "exprel", "huber", "inv_boxcox", "inv_boxcox1p", "kl_div", "log1p", "powm1", "pseudo_huber",
    "radian", "rel_entr", "round", "sindg", "tandg"]

_DEGREE = math.pi / 180


def polynomial(x, coefficients):
    """Return a polynomial by Horner's rule; coefficients of the lowest power come first."""
    total = coefficients[-1]
    for coefficient in reversed(coefficients[:-1]):
        total = total * x + coefficient
    return total


def inside(domain, partial):
    """Return a partial derivative inside of a domain, NaN elsewhere, as are its own derivatives."""
    return np.where(domain, partial, np.nan * np.where(domain, 1, partial))


# Taylor coefficients of the derivatives of expm1(x) / x and log1p(x) / x.
_EXPREL = [1 / (math.factorial(k) * (k + 2)) for k in range(10)]
_LOG1P_OVER = [(-1)**k * k / (k + 1) for k in range(1, 19)]


def _exprel_partial(y, x):
    """Return (exp(x) - y) / x for y = expm1(x) / x, near 0 by the series, which does not cancel."""
    is_near = np.abs(x) < 0.1
    near, away = np.where(is_near, x, 0), np.where(is_near, 1, x)
    return np.where(is_near, polynomial(near, _EXPREL), (np.exp(away) - y) / away)


def _log1p_over(x):
    return np.where(x == 0, 1, np.log1p(x) / np.where(x == 0, 1, x))


def _log1p_over_partial(y, x):
    is_near = np.abs(x) < 0.1
    near, away = np.where(is_near, x, 0), np.where(is_near, 1, x)
    return np.where(is_near, polynomial(near, _LOG1P_OVER), (1 / (1 + away) - y) / away)


log1p_over = elementwise("ScipyLog1pOver", _log1p_over, _log1p_over_partial)
cbrt = elementwise("ScipyCbrt", special.cbrt, lambda y, x: 1 / (3 * y * y))
exp2 = elementwise("ScipyExp2", special.exp2, lambda y, x: math.log(2) * y)
exp10 = elementwise("ScipyExp10", special.exp10, lambda y, x: math.log(10) * y)
expm1 = elementwise("ScipyExpm1", special.expm1, lambda y, x: np.exp(x))
log1p = elementwise("ScipyLog1p", special.log1p, lambda y, x: inside(y == y, 1 / (1 + x)))
exprel = elementwise("ScipyExprel", special.exprel, _exprel_partial)
cosm1 = elementwise("ScipyCosm1", special.cosm1, lambda y, x: -np.sin(x))
sindg = elementwise("ScipySindg", special.sindg, lambda y, x: _DEGREE * cosdg(x))
cosdg = elementwise("ScipyCosdg", special.cosdg, lambda y, x: -_DEGREE * sindg(x))
tandg = elementwise("ScipyTandg", special.tandg, lambda y, x: _DEGREE * (1 + y * y))
cotdg = elementwise("ScipyCotdg", special.cotdg, lambda y, x: -_DEGREE * (1 + y * y))
radian = elementwise(
    "ScipyRadian", special.radian, lambda y, d, m, s: _DEGREE, lambda y, d, m, s: _DEGREE / 60,
    lambda y, d, m, s: _DEGREE / 3600)
round = elementwise("ScipyRound", special.round, None)
powm1 = elementwise(
    "ScipyPowm1", special.powm1, lambda z, x, y: power_in_base(np.power(x, y), x, y),
    lambda z, x, y: np.power(x, y) * np.log(np.where(x == 0, 1, x)))


# ---- transformations of Box and Cox ----------------------------------------------------------


def _in_exponent(x, lmbda, log, one):
    """Differentiate expm1(lmbda * log(x)) / lmbda in lmbda; x = `one` has logarithm 0."""
    at_end = (x == one - 1) & (lmbda > 0)  # expm1 is -1 there
    x_log = log(np.where(at_end, one, x))
    t = lmbda * x_log
    inner = x_log * x_log * _exprel_partial(np.expm1(t) / np.where(t == 0, 1, t), t)
    # There the slope in x is infinite for lmbda <= 1, as is that of the root, which is 0.
    is_steep = at_end & (lmbda <= 1)
    root = np.where(is_steep, np.sqrt(np.where(is_steep, x + (1 - one), 1)), 0)
    return np.where(at_end, 1 / np.square(np.where(at_end, lmbda, 1)) - root, inner)


def _inverse_in_exponent(z, y, lmbda):
    """Differentiate z = exp(log1p(lmbda * y) / lmbda) in lmbda."""
    t = lmbda * y
    return z * (y * y) * _log1p_over_partial(log1p_over(t), t)


boxcox = elementwise(
    "ScipyBoxcox", special.boxcox, lambda y, x, lmbda: inside(x >= 0, np.power(x, lmbda - 1)),
    lambda y, x, lmbda: _in_exponent(x, lmbda, np.log, 1))
boxcox1p = elementwise(
    "ScipyBoxcox1p", special.boxcox1p,
    lambda y, x, lmbda: inside(x >= -1, np.where(
        x < -0.5, np.power(np.where(x < -0.5, 1 + x, 1), lmbda - 1),
        np.exp((lmbda - 1) * np.log1p(np.where(x < -0.5, 0, x))))),
    lambda y, x, lmbda: _in_exponent(x, lmbda, np.log1p, 0))
inv_boxcox = elementwise(
    "ScipyInvBoxcox", special.inv_boxcox, lambda z, y, lmbda: z / (1 + lmbda * y),
    _inverse_in_exponent)
inv_boxcox1p = elementwise(
    "ScipyInvBoxcox1p", special.inv_boxcox1p,
    lambda z, y, lmbda: np.exp(y * log1p_over(lmbda * y)) / (1 + lmbda * y),
    lambda z, y, lmbda: _inverse_in_exponent(np.exp(y * log1p_over(lmbda * y)), y, lmbda))

# ---- entropies and losses --------------------------------------------------------------------


def _log_ratio(x, y):
    """Return log(x / y), by the difference of near operands, which is exact."""
    is_near = np.abs(x - y) < 0.5 * y
    near = np.log1p(np.where(is_near, x - y, 0) / np.where(is_near, y, 1))
    return np.where(is_near, near, np.log(x) - np.log(y))


def _is_limit(x, y):
    """Return where 1 - x / y is 1, the limit, though NumPy would divide by 0 or infinity."""
    return (x == 0) & (y == 0) | (x < np.inf) & (y == np.inf)


entr = elementwise("ScipyEntr", special.entr, lambda y, x: -np.log(x) - 1)
rel_entr = elementwise(
    "ScipyRelEntr", special.rel_entr,
    lambda z, x, y: 1 + _log_ratio(x, y), lambda z, x, y: inside((x >= 0) & (y >= 0), -x / y))
_kl_div_slope = elementwise(
    "ScipyKlDivSlope", quotient_ufuncs.divergence_slope,
    lambda s, x, y: inside(s == s, np.where(_is_limit(x, y), 0, -1 / y)),
    lambda s, x, y: inside(s == s, np.where(_is_limit(x, y), 0, x / (y * y))))
kl_div = elementwise(
    "ScipyKlDiv", special.kl_div,
    lambda z, x, y: _log_ratio(x, y), lambda z, x, y: _kl_div_slope(x, y))
huber = elementwise(
    "ScipyHuber", special.huber,
    lambda z, delta, r: inside(
        delta >= 0, np.where(np.abs(r) <= delta, 0, np.abs(r) - delta)),
    lambda z, delta, r: inside(
        delta >= 0, np.where(r > delta, delta, np.where(r < -delta, -delta, r))))


def _pseudo_huber_in_delta(z, delta, r):
    u = r / np.where(delta == 0, 1, delta)
    s = np.hypot(1, u)
    w = u * (u / (1 + s))
    return inside(delta >= 0, np.where(delta == 0, np.abs(r), delta * w * (w / s)))


pseudo_huber = elementwise(
    "ScipyPseudoHuber", special.pseudo_huber, _pseudo_huber_in_delta,
    lambda z, delta, r: inside(delta >= 0, delta * r / np.hypot(delta, r)))
