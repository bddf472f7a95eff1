"""Bessel functions and modified Bessel functions (DLMF 10), which have no derivatives in the order.

`i0` here is SciPy's, and a ufunc; `numpy.i0` is in `cytape.ops.calculus.bessel`.
"""

import numpy as np
import scipy.special as special

from cytape.ops.engine.op_kinds import elementwise
from cytape.ops.special.shape_parameters import no_partial

__all__ = [
    "i0", "i0e", "i1", "i1e", "iv", "ive", "j0", "j1", "jn", "jv", "k0", "k1", "kv", "y0", "y1",
    "yn", "yv"]


def _over(y, x, sign, factor=1):
    """Return y / x for y = J1 (of sign -1) or I1, near 0 by the series, which does not cancel."""
    is_near = abs(x) < 0.01
    t = sign * np.square(np.where(is_near, x, 0))
    series = 1 / 2 + t * (1 / 16 + t / 384)
    return np.where(is_near, factor * series, y / np.where(is_near, 1, x))


j0 = elementwise("ScipyJ0", special.j0, lambda y, x: -j1(x))
j1 = elementwise("ScipyJ1", special.j1, lambda y, x: j0(x) - _over(y, x, -1))
jn = jv = elementwise(
    "ScipyJv", special.jv,
    no_partial("jv", "v"), lambda y, v, x: 0.5 * (jv(v - 1, x) - jv(v + 1, x)))
y0 = elementwise("ScipyY0", special.y0, lambda y, x: -y1(x))
y1 = elementwise("ScipyY1", special.y1, lambda y, x: y0(x) - y / x)
yn = elementwise(
    "ScipyYn", special.yn,
    no_partial("yn", "n"), lambda y, n, x: 0.5 * (yn(n - 1, x) - yn(n + 1, x)))
yv = elementwise(
    "ScipyYv", special.yv,
    no_partial("yv", "v"), lambda y, v, x: 0.5 * (yv(v - 1, x) - yv(v + 1, x)))

i0 = elementwise("ScipyI0", special.i0, lambda y, x: i1(x))
i1 = elementwise("ScipyI1", special.i1, lambda y, x: i0(x) - _over(y, x, 1))
iv = elementwise(
    "ScipyIv", special.iv,
    no_partial("iv", "v"), lambda y, v, x: 0.5 * (iv(v - 1, x) + iv(v + 1, x)))


def _scaled(slope, y, v, x):
    """Return the slope of y = exp(-abs(x)) Iv(x), for large x by an expansion in 1 / x.

    The slope cancels there. The expansion is that of the logarithmic derivative, of which Bessel's
    equation (DLMF 10.25.1) gives a Riccati equation.
    """
    is_large = abs(x) > 300 * (1 + v * v)
    s = 1 / np.where(is_large, x, np.inf)
    q, m = abs(s), 4 * v * v - 1
    series = 1 - q * m / 4 * (1 + q * (1 - q * (m - 24) / 16 - q * q * (m - 12) / 4))
    return np.where(is_large, -0.5 * s * y * series, slope - np.sign(x) * y)


i0e = elementwise("ScipyI0e", special.i0e, lambda y, x: _scaled(i1e(x), y, 0, x))
i1e = elementwise(
    "ScipyI1e", special.i1e,
    lambda y, x: _scaled(i0e(x) - _over(y, x, 1, np.exp(-abs(x))), y, 1, x))
ive = elementwise(
    "ScipyIve", special.ive, no_partial("ive", "v"),
    lambda y, v, x: _scaled(0.5 * (ive(v - 1, x) + ive(v + 1, x)), y, v, x))
k0 = elementwise("ScipyK0", special.k0, lambda y, x: -k1(x))
k1 = elementwise("ScipyK1", special.k1, lambda y, x: -k0(x) - y / x)
kv = elementwise(
    "ScipyKv", special.kv,
    no_partial("kv", "v"), lambda y, v, x: -0.5 * (kv(v - 1, x) + kv(v + 1, x)))
