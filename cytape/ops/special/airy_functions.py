"""Airy and Kelvin functions, each with its derivative among the outputs (DLMF 9 and 10.61)."""

import numpy as np

import cytape.ops.special_kernels.special_ufuncs as special
from cytape.ops.engine.op_kinds import elementwise
from cytape.ops.special.elementary_functions import polynomial
from cytape.ops.special.several_outputs import several
from cytape.ops.special.shape_parameters import is_complex

__all__ = [
    "airy", "airye", "bei", "beip", "ber", "berp", "itairy", "kei", "keip", "kelvin", "ker", "kerp"]


def _logarithmic_series(first):
    """Return the series of the logarithmic derivative over sqrt(x), in x**(-3/2), without `first`.

    It follows from the Riccati equation w' + w**2 = x; `first` is -1 for Ai and 1 for Bi.
    """
    a = [first]
    for n in range(1, 9):
        total = sum(a[i] * a[n - i] for i in range(1, n)) + (2 - 1.5 * n) * a[n - 1]
        a.append(-total / (2 * first))
    return a[1:]


_AI, _BI = _logarithmic_series(-1), _logarithmic_series(1)


def _slope(y, slope, x, root, first, series):
    """Return slope - first sqrt(x) y, the derivative of the scaled y, for large x by a series."""
    is_large = np.abs(x) > 100
    s = 1 / np.where(is_large, x * root, np.inf)
    return np.where(is_large, y * root * s * polynomial(s, series), slope - first * root * y)


def _scaled(y, x):
    """Return the derivatives of the scaled functions; Bi of complex z, not holomorphic, has NaN."""
    if is_complex(x):
        root = np.sqrt(x)
        in_bi = in_bip = np.nan
    else:
        root = np.sqrt(np.maximum(x, 0))
        slope = _slope(y[2], y[3], x, root, 1, _BI)
        is_left = x < 0
        in_bi = np.where(is_left, y[3], slope)
        in_bip = np.where(is_left, x * y[2], -root * slope)
    slope = _slope(y[0], y[1], x, root, -1, _AI)
    return slope, root * slope, in_bi, in_bip


airy = several("ScipyAiry", special.airy, lambda y, x: (y[1], x * y[0], y[3], x * y[2]))
airye = several("ScipyAirye", special.airye, _scaled)
itairy = several(
    "ScipyItairy", special.itairy,
    lambda y, x: (*airy(x)[::2], *airy(-x)[::2]))

# Kelvin's functions are the real and imaginary part of w, where w'' = -w' / x + i w.


def _over(y, x, at_0):
    is_0 = x == 0
    return np.where(is_0, at_0, y / np.where(is_0, 1, x))


ber = elementwise("ScipyBer", special.ber, lambda y, x: berp(x))
bei = elementwise("ScipyBei", special.bei, lambda y, x: beip(x))
ker = elementwise("ScipyKer", special.ker, lambda y, x: kerp(x))
kei = elementwise("ScipyKei", special.kei, lambda y, x: keip(x))
berp = elementwise("ScipyBerp", special.berp, lambda y, x: -_over(y, x, 0) - bei(x))
beip = elementwise("ScipyBeip", special.beip, lambda y, x: -_over(y, x, 0.5) + ber(x))
kerp = elementwise("ScipyKerp", special.kerp, lambda y, x: -y / x - kei(x))
keip = elementwise("ScipyKeip", special.keip, lambda y, x: -y / x + ker(x))
kelvin = several(
    "ScipyKelvin", special.kelvin,
    lambda y, x: (y[2], y[3], 1j * y[0] - _over(y[2], x, 0.5j), 1j * y[1] - y[3] / x))
