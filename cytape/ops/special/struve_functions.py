"""Struve functions and integrals of Bessel functions (DLMF 11), without derivatives in orders."""

import math

import numpy as np

import cytape.ops.special_kernels.special_ufuncs as special
from cytape.ops.engine.op_kinds import elementwise
from cytape.ops.special.bessel_functions import i0, j0, k0, y0
from cytape.ops.special.elementary_functions import polynomial
from cytape.ops.special.gamma_functions import rgamma
from cytape.ops.special.several_outputs import several
from cytape.ops.special.shape_parameters import in_last, no_partial

__all__ = [
    "besselpoly", "it2i0k0", "it2j0y0", "it2struve0", "iti0k0", "itj0y0", "itmodstruve0",
    "itstruve0", "modstruve", "struve"]


def _lower(function, y, v, x):
    """Return the function of order v - 1, less v y / x, which does not cancel (DLMF 11.4.27).

    At 0 the quotient is the first term of its series, which has derivatives (DLMF 11.2.1).
    """
    at_0 = x == 0
    power = np.power(np.where(at_0 & (v > 0), 0.5 * x, 1), v)
    first = np.where(v > 0, power * rgamma(v + 1.5) / math.sqrt(math.pi), 0)
    return function(v - 1, x) - v * np.where(at_0, first, y / np.where(at_0, 1, x))


struve = in_last("struve", "v", lambda y, v, x: _lower(struve, y, v, x))
modstruve = in_last("modstruve", "v", lambda y, v, x: _lower(modstruve, y, v, x))


def _of_order_0(function, below, sign):
    """Declare the function of order 0, near 0 by its series, since SciPy's call takes microseconds.

    `below` is the function that returns the order below (DLMF 11.4.27).
    """
    series = [2 / math.pi * sign**k / math.prod(range(1, 2 * k + 2, 2))**2 for k in range(18)]

    def forward(x):
        is_near = np.abs(x) < 5
        near = np.where(is_near, x, 0)
        y = near * polynomial(near * near, series)
        return y if np.all(is_near) else np.where(is_near, y, function(y.dtype.type(0), x))

    return elementwise(
        f"Scipy{function.__name__.capitalize()}0", forward, lambda y, x: below(-1, x))


_struve0, _modstruve0 = _of_order_0(special.struve, struve, -1), _of_order_0(
    special.modstruve, modstruve, 1)
itstruve0 = elementwise("ScipyItstruve0", special.itstruve0, lambda y, x: _struve0(x))
itmodstruve0 = elementwise("ScipyItmodstruve0", special.itmodstruve0, lambda y, x: _modstruve0(x))
it2struve0 = elementwise(
    "ScipyIt2struve0", special.it2struve0,
    lambda y, x: -np.where(x == 0, 2 / math.pi, _struve0(x) / np.where(x == 0, 1, x)))

_SERIES = [1 / math.factorial(k + 1)**2 for k in range(9)]


def _less_one(function, sign, x):
    """Return (function(x) - 1) / x for J0 (of sign -1) or I0, near 0 by the series."""
    is_near = np.abs(x) < 1
    near, away = np.where(is_near, x, 0), np.where(is_near, 1, x)
    t = sign * 0.25 * near * near
    return np.where(
        is_near, sign * 0.25 * near * polynomial(t, _SERIES), (function(away) - 1) / away)


itj0y0 = several("ScipyItj0y0", special.itj0y0, lambda y, x: (j0(x), y0(x)))
iti0k0 = several("ScipyIti0k0", special.iti0k0, lambda y, x: (i0(x), k0(x)))
it2j0y0 = several(
    "ScipyIt2j0y0", special.it2j0y0, lambda y, x: (-_less_one(j0, -1, x), -y0(x) / x))
it2i0k0 = several(
    "ScipyIt2i0k0", special.it2i0k0, lambda y, x: (_less_one(i0, 1, x), -k0(x) / x))


def _besselpoly_in_a(y, a, lmb, nu):
    """Differentiate without orders below 0, of which SciPy's values are wrong (DLMF 10.6.1-2)."""
    is_low, upper = nu < 1, besselpoly(a, lmb + 1, nu + 1)
    quotient = np.where(nu == 0, 0, nu * y / np.where(nu == 0, 1, a))
    return np.where(
        is_low, quotient - 2 * upper, besselpoly(a, lmb + 1, np.where(is_low, 0, nu - 1)) - upper)


besselpoly = elementwise(
    "ScipyBesselpoly", special.besselpoly, _besselpoly_in_a,
    no_partial("besselpoly", "lmb"), no_partial("besselpoly", "nu"))
