"""Bessel functions, modified ones and those of Hankel (DLMF 10), without derivatives in the order.

`i0` here is SciPy's, and a ufunc; `numpy.i0` is in `cytape.ops.calculus.bessel`. Functions scaled
by the exponential of a magnitude, such as `ive`, are not holomorphic: complex arguments of theirs
have no derivative.
"""

import math

import numpy as np

import cytape.ops.special_kernels.special_ufuncs as special
from cytape.ops.engine.op_kinds import elementwise
from cytape.ops.special.gamma_functions import gammaln, xlogy
from cytape.ops.special.several_outputs import with_slopes
from cytape.ops.special.shape_parameters import in_last, no_partial, of_real, real_order

__all__ = [
    "hankel1", "hankel1e", "hankel2", "hankel2e", "i0", "i0e", "i1", "i1e", "iv", "ive", "j0", "j1",
    "jn", "jv", "jve", "k0", "k0e", "k1", "k1e", "kn", "kv", "kve", "y0", "y1", "yn", "yv", "yve"]


def _over(y, x, sign, factor=1):
    """Return y / x for y = J1 (of sign -1) or I1, near 0 by the series, which does not cancel."""
    is_near = abs(x) < 0.01
    t = sign * np.square(np.where(is_near, x, 0))
    series = 1 / 2 + t * (1 / 16 + t / 384)
    return np.where(is_near, factor * series, y / np.where(is_near, 1, x))


def _neighbours(function, v, x, sign):
    """Return half the sum, or difference, of a function of the orders v - 1 and v + 1."""
    v = real_order(v)
    return 0.5 * (function(v - 1, x) + sign * function(v + 1, x))


def _lower(function, y, v, x, sign=1):
    """Return the derivative of y = Y, K (of sign -1) or H, by the lower order: SciPy is faster."""
    return sign * function(real_order(v) - 1, x) - v / x * y


j0 = elementwise("ScipyJ0", special.j0, lambda y, x: -j1(x))
j1 = elementwise("ScipyJ1", special.j1, lambda y, x: j0(x) - _over(y, x, -1))
jn = jv = in_last("jv", "v", lambda y, v, x: _neighbours(jv, v, x, -1))
jve = in_last("jve", "v", of_real("jve", "z", lambda y, v, x: _neighbours(jve, v, x, -1)))
y0 = elementwise("ScipyY0", special.y0, lambda y, x: -y1(x))
y1 = elementwise("ScipyY1", special.y1, lambda y, x: y0(x) - y / x)
yn = in_last("yn", "n", lambda y, n, x: _neighbours(yn, np.trunc(n), x, -1))
yv = in_last("yv", "v", lambda y, v, x: _lower(yv, y, v, x))
yve = in_last("yve", "v", of_real("yve", "z", lambda y, v, x: _lower(yve, y, v, x)))

i0 = elementwise("ScipyI0", special.i0, lambda y, x: i1(x))
i1 = elementwise("ScipyI1", special.i1, lambda y, x: i0(x) - _over(y, x, 1))
iv = in_last("iv", "v", lambda y, v, x: _neighbours(iv, v, x, 1))
k0 = elementwise("ScipyK0", special.k0, lambda y, x: -k1(x))
k1 = elementwise("ScipyK1", special.k1, lambda y, x: -k0(x) - y / x)
kn = in_last("kn", "n", lambda y, n, x: _lower(kn, y, np.abs(np.trunc(n)), x, -1))
kv = in_last("kv", "v", lambda y, v, x: _lower(kv, y, v, x, -1))
hankel1 = in_last("hankel1", "v", lambda y, v, z: _lower(hankel1, y, v, z))
hankel2 = in_last("hankel2", "v", lambda y, v, z: _lower(hankel2, y, v, z))


# ---- functions scaled by exponentials --------------------------------------------------------


def _scaled(slope, y, v, x, exponent):
    """Return the slope of y = exp(-exponent x) F(x), for large x by an expansion in 1 / x.

    `slope` is that of F, scaled: the difference to exponent times y cancels there. The expansion is
    that of the logarithmic derivative, of which Bessel's equation (DLMF 10.25.1) gives a Riccati
    equation. Exponents are 1, -1, i or -i.
    """
    is_large = np.abs(x) > 300 + 50 * np.abs(v) * np.abs(v)
    s = 1 / np.where(is_large, x, np.inf)
    q, m = np.conj(exponent) * s if isinstance(exponent, complex) else exponent * s, 4 * v * v - 1
    series = 1 - q * m / 4 * (1 + q * (1 - q * (m - 24) / 16 - q * q * (m - 12) / 4))
    return np.where(is_large, -0.5 * s * y * series, slope - exponent * y)


def _by_arrays(quick, partial):
    """Return a partial that has another formula for real arrays between 0 and 300, or -300.

    That one has no derivatives, but calls SciPy once.
    """

    def chosen(y, *operands):
        x = operands[-1]
        is_quick = isinstance(x, (np.ndarray, np.generic)) and x.dtype.kind == "f" and (
            np.all((x != 0) & (np.abs(x) < 300)))
        return (quick if is_quick else partial)(y, *operands)

    return chosen


_i1e_partial = _by_arrays(
    lambda y, x: special.i0e(x) - (1 / x + np.sign(x)) * y,
    lambda y, x: _scaled(i0e(x) - _over(y, x, 1, np.exp(-abs(x))), y, 1, x, np.sign(x)))
_ive_partial = _by_arrays(
    lambda y, v, x: special.ive(v + 1, x) + (v / x - np.sign(x)) * y,
    of_real("ive", "z", lambda y, v, x: _scaled(
        _neighbours(ive, v, x, 1), y, v, x, np.sign(x))))
i0e = elementwise("ScipyI0e", special.i0e, lambda y, x: _scaled(i1e(x), y, 0, x, np.sign(x)))
i1e = with_slopes("ScipyI1e", special.i1e, lambda *given: (_i1e_partial(*given),))
ive = in_last("ive", "v", _ive_partial, together=lambda *given: (
    no_partial("ive", "v")(), _ive_partial(*given)))
k0e = elementwise("ScipyK0e", special.k0e, lambda y, x: _scaled(-k1e(x), y, 0, x, -1))
k1e = elementwise("ScipyK1e", special.k1e, lambda y, x: _scaled(-k0e(x) - y / x, y, 1, x, -1))
kve = in_last("kve", "v", lambda y, v, x: _scaled(_lower(kve, y, v, x, -1), y, v, x, -1))
hankel1e = in_last("hankel1e", "v", lambda y, v, z: _scaled(
    _lower(hankel1e, y, v, z), y, v, z, 1j))
hankel2e = in_last("hankel2e", "v", lambda y, v, z: _scaled(
    _lower(hankel2e, y, v, z), y, v, z, -1j))


def log_ive(v, x):
    """Return log(ive(v, x)) for v > -1 and x > 0, also where the function underflows.

    It is a series for small x, and for large v the expansion of Debye (DLMF 10.41.3).
    """
    square = 0.25 * x * x
    is_large, is_small = np.greater_equal(v, 200), square < 0.05 * (v + 1)
    order, place = np.where(is_large, v, 200.0), np.where(is_large, x, 1.0)
    z = place / order
    root = np.sqrt(1 + z * z)
    t = 1 / root
    w = t * t
    rest = t / order * ((3 - 5 * w) / 24 + t / order * (
        (81 + w * (385 * w - 462)) / 1152 + t / order * (
            (30375 + w * (w * (765765 - 425425 * w) - 369603)) / 414720)))
    debye = order * (1 / (root + z) + np.log(z / (1 + root))) - 0.5 * np.log(
        2 * math.pi * order * root) + np.log1p(rest)
    small, total = np.where(is_small, square, 0.0), 1.0
    for k in range(9, 0, -1):
        total = 1 + total * small / (k * (k + v))
    series = xlogy(v, 0.5 * x) - gammaln(v + 1) - x + np.log(total)
    is_other = ~(is_large | is_small)
    other = np.log(ive(np.where(is_other, v, 1.0), np.where(is_other, x, 1.0)))
    return np.where(is_large, debye, np.where(is_small, series, other))
