"""Distributions of Kolmogorov, Smirnov and Tukey, and their inverse functions.

The distributions of Smirnov have first derivatives only.
"""

import math

import numpy as np

import cytape.ops.special_kernels.special_ufuncs as special
from cytape.ops.engine.op_kinds import elementwise
from cytape.ops.special.elementary_functions import boxcox
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
smirnovi = elementwise(
    "ScipySmirnovi", special.smirnovi, no_partial("smirnovi", "n"),
    lambda d, n, p: 1 / _smirnov_slope(n, d))


def _tukey_density(p, x, lmbda):
    """Return the density, 0 outside of the support, whose ends are 1 / lmbda for positive lmbda."""
    return np.where(
        np.abs(x) * lmbda >= 1, 0, 1 / (np.power(p, lmbda - 1) + np.power(1 - p, lmbda - 1)))


def _tukey_in_shape(p, x, lmbda):
    is_inside = np.abs(x) * lmbda < 1
    p = np.where(is_inside, p, 0.5)
    slopes = [boxcox.partials[1](None, side, lmbda) for side in (p, 1 - p)]
    return np.where(is_inside, (slopes[1] - slopes[0]) * _tukey_density(p, x, lmbda), 0)


tklmbda = elementwise(
    "ScipyTklmbda", special.tklmbda, _tukey_density, _tukey_in_shape)
