"""Distributions of Kolmogorov, Smirnov and Tukey, and their inverse functions.

The distributions of Smirnov have first derivatives only.
"""

import math

import numpy as np

import cytape.ops.special_kernels.special_ufuncs as special
from cytape.ops.engine.op_kinds import elementwise
from cytape.ops.special.elementary_functions import boxcox, boxcox1p
from cytape.ops.special.several_outputs import with_slopes
from cytape.ops.special.shape_parameters import no_partial

__all__ = ["kolmogi", "kolmogorov", "smirnov", "smirnovi", "tklmbda"]


def kolmogorov_density(x):
    """Return the density, by one of two series of theta functions, which converge fast."""
    is_small = x < 1
    small, large = np.where(is_small, np.maximum(x, 1e-2), 1), np.where(is_small, 1, x)
    q = 1 / (small * small)
    below = above = 0
    for k in range(1, 6):
        w = (2 * k - 1)**2 * math.pi**2 / 4 * q
        below = below + np.exp(-0.5 * w) * (w - 1)
        above = above + (-1)**(k - 1) * k * k * np.exp(-2 * (k * large) * (k * large))
    return np.where(is_small, math.sqrt(2 * math.pi) * q * below, 8 * large * above)


kolmogorov = elementwise(
    "ScipyKolmogorov", special.kolmogorov, lambda y, x: -kolmogorov_density(x))
kolmogi = elementwise(
    "ScipyKolmogi", special.kolmogi, lambda x, p: -1 / kolmogorov_density(x))
_smirnov_slope = elementwise(
    "ScipySmirnovSlope", special._ufuncs._smirnovp,
    no_partial("smirnov", "n"), no_partial("smirnov", "d", "second derivative"))
smirnov = elementwise(
    "ScipySmirnov", special.smirnov, no_partial("smirnov", "n"),
    lambda y, n, d: _smirnov_slope(n, d))


def _smirnovi_in_p(d, n, p):
    """Differentiate the quantile; above 1 - 1 / n, where p = (1 - d)**n, not from d near 1."""
    is_near_1 = p <= np.power(n, -n)
    steep, inner = np.where(is_near_1, p, 1), np.where(is_near_1, 0.5, d)
    return np.where(is_near_1, np.power(steep, 1 / n - 1) / -n, 1 / _smirnov_slope(n, inner))


smirnovi = elementwise(
    "ScipySmirnovi", special.smirnovi, no_partial("smirnovi", "n"), _smirnovi_in_p)

# ---- Tukey's distribution, of the quantile (p**lmbda - (1 - p)**lmbda) / lmbda ---------------


def _tukey_tail(p, x, lmbda):
    """Return the probability of a tail that ends at x; SciPy's p has absolute errors of 1e-14.

    The first iteration multiplies errors by the power 1 - lmbda of the odds, which are small far
    out; the second one is Newton's.
    """
    end, tail = -np.abs(x), np.clip(np.where(x > 0, 1 - p, p), 1e-300, 0.5)
    with np.errstate(all="ignore"):
        for _ in range(2):
            found = special.inv_boxcox(special.boxcox1p(-tail, lmbda) + end, lmbda)
            tail = np.where((lmbda < 1) & (found > 0), found, tail)
        for _ in range(2):
            excess = special.boxcox(tail, lmbda) - special.boxcox1p(-tail, lmbda) - end
            tail = np.maximum(tail - excess * _tukey_density(tail, lmbda), 1e-300)
    return tail


def _tukey_density(tail, lmbda):
    return 1 / (np.power(tail, lmbda - 1) + np.power(1 - tail, lmbda - 1))


def _left_tail_in_shape(tail, lmbda):
    return _tukey_density(tail, lmbda) * (
        boxcox1p.partials[1](None, -tail, lmbda) - boxcox.partials[1](None, tail, lmbda))


def _side(x):
    return np.where(x > 0, -1, 1)


_tail = elementwise(
    "ScipyTukeyTail", _tukey_tail, None,
    lambda tail, p, x, lmbda: _side(x) * _tukey_density(tail, lmbda),
    lambda tail, p, x, lmbda: _left_tail_in_shape(tail, lmbda))


def _tukey_slopes(p, x, lmbda):
    """Return the derivatives, 0 outside of the support, which ends at 1 / lmbda if positive."""
    size = np.abs(x)
    is_outside = (size * lmbda >= 1) | (size == np.inf)
    tail = _tail(np.where(is_outside, 0.5, p), np.where(is_outside, 0, x), lmbda)
    return (np.where(is_outside, 0, _tukey_density(tail, lmbda)),
            np.where(is_outside, 0, _side(x) * _left_tail_in_shape(tail, lmbda)))


tklmbda = with_slopes("ScipyTklmbda", special.tklmbda, _tukey_slopes)
