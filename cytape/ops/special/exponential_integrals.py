"""Integrals of exponentials, of sines and cosines, of Fresnel and Dawson, and dilogarithms.

DLMF 6 and 7, 25.12.
"""

import math

import numpy as np

import cytape.ops.special_kernels.special_ufuncs as special
from cytape.ops.engine.op_kinds import elementwise
from cytape.ops.special.elementary_functions import inside, log1p_over, polynomial
from cytape.ops.special.error_functions import erf, erfcx_partial
from cytape.ops.special.several_outputs import several, with_slopes
from cytape.ops.special.shape_parameters import is_complex, no_partial
from cytape.ops.special_kernels.sine_cosine_pairs import sine_cosine_of_square, sine_cosine_over

__all__ = [
    "dawsn", "erfi", "exp1", "expi", "expn", "fresnel", "modfresnelm", "modfresnelp", "owens_t",
    "shichi", "sici", "spence", "voigt_profile", "wofz"]

_ROOT_PI = math.sqrt(math.pi)
_ROOT_2_PI = math.sqrt(2 * math.pi)


def _expn_partial(y, n, x):
    """Return -E[n - 1](x), by the recurrence (DLMF 8.19.12) where it does not cancel."""
    n = np.trunc(n)  # as SciPy does
    is_low = n < 2
    return -np.where(
        is_low, (np.exp(-x) - (n - 1) * np.where(is_low, y, 0)) / x,
        expn(np.where(is_low, 2, n) - 1, x))


exp1 = elementwise("ScipyExp1", special.exp1, lambda y, x: inside(y == y, -np.exp(-x) / x))
expi = elementwise("ScipyExpi", special.expi, lambda y, x: np.exp(x) / x)
expn = elementwise("ScipyExpn", special.expn, no_partial("expn", "n"), _expn_partial)

_SERIES = [(2 * k + 2) / math.factorial(2 * k + 3) for k in range(9)]


def _over_slope(y, x, cosine, sign):
    """Differentiate y = sin(x) / x, or sinh(x) / x; near 0 by a series, which does not cancel."""
    is_near = np.abs(x) < 0.5
    near, away = np.where(is_near, x, 0), np.where(is_near, 1, x)
    series = sign * near * polynomial(sign * near * near, _SERIES)
    return np.where(is_near, series, (cosine(away) - y) / away)


_sines_over = several("ScipySinesOver", sine_cosine_over, lambda y, x: (
    _over_slope(y[0], x, np.cos, -1), -y[0] - y[1] / x))
_sinh_over = elementwise(
    "ScipySinhOver", lambda x: np.where(x == 0, 1, np.sinh(x) / np.where(x == 0, 1, x)),
    lambda y, x: _over_slope(y, x, np.cosh, 1))
sici = several("ScipySici", special.sici, lambda y, x: _sines_over(x))
shichi = several("ScipyShichi", special.shichi, lambda y, x: (_sinh_over(x), np.cosh(x) / x))


def spence_partial(y, z):
    """Return log(z) / (1 - z)."""
    is_near = np.abs(z - 1) < 0.5
    near, away = np.where(is_near, z - 1, 0), np.where(is_near, 2, z)
    return np.where(is_near, -log1p_over(near), np.log(away) / (1 - away))


spence = elementwise("ScipySpence", special.spence, spence_partial)

# ---- sines and cosines of squares ------------------------------------------------------------


# sine and cosine of pi x**2 / 2
_of_square = several(
    "ScipySquareAngles", sine_cosine_of_square,
    lambda y, x: (math.pi * x * y[1], -math.pi * x * y[0]))
fresnel = several("ScipyFresnel", special.fresnel, lambda y, x: _of_square(x))


def _modified_fresnel(sign):
    """Return the row of F(x), an integral of exp(sign i t**2), and K(x) = erfcx(turn x) / 2."""
    turn = math.sqrt(0.5) * (1 - sign * 1j)

    def row(y, x):
        return -np.exp(sign * 1j * x * x), 0.5 * turn * erfcx_partial(2 * y[1], turn * x)

    return row


modfresnelp = several("ScipyModfresnelp", special.modfresnelp, _modified_fresnel(1))
modfresnelm = several("ScipyModfresnelm", special.modfresnelm, _modified_fresnel(-1))

# ---- relatives of the error function ---------------------------------------------------------


def _dawsn_partial(y, x):
    """Return 1 - 2 x y, for large x by its asymptotic series (DLMF 7.12.1)."""
    is_large = (np.real(x * x) if is_complex(x) else x * x) > 225
    q = 1 / np.square(np.where(is_large, x, 1e4))
    series = 1
    for k in range(9, 0, -1):
        series = 1 + (k + 0.5) * q * series
    return np.where(is_large, -0.5 * q * series, 1 - 2 * x * y)


def _wofz_partial(y, z):
    return -1j * erfcx_partial(y, -1j * z)


erfi = elementwise("ScipyErfi", special.erfi, lambda y, x: 2 / _ROOT_PI * np.exp(x * x))
dawsn = elementwise("ScipyDawsn", special.dawsn, _dawsn_partial)
wofz = elementwise("ScipyWofz", special.wofz, _wofz_partial)
owens_t = elementwise(
    "ScipyOwensT", special.owens_t,
    lambda y, h, a: (-0.5 / _ROOT_2_PI) * np.exp(-0.5 * h * h) * erf(a * h * math.sqrt(0.5)),
    lambda y, h, a: np.exp(-0.5 * h * h * (1 + a * a)) / (2 * math.pi * (1 + a * a)))


# The profile is Re w(z) scale / sqrt(pi) for z = (x + i gamma) scale. It solves the heat equation:
# its derivative in sigma is sigma times the second one in x. Without sigma it is Cauchy's density.


def _is_large(z):
    """Return where real parts of derivatives of w cancel, and asymptotic series converge."""
    x, y = np.real(z), np.imag(z)
    size = np.abs(z)
    return (size > 7) & ((y > 1) | (y > 1e15 * size**6 * np.exp(-x * x)))


def _or_series(is_large, z, coefficients, power, near):
    """Return a derivative of w, by its asymptotic series for large z."""
    if isinstance(is_large, (np.ndarray, np.bool_)) and not np.any(is_large):
        return near
    q = 1 / np.where(is_large, z, 1e4)
    series = 1j / _ROOT_PI * q**power * polynomial(q * q, coefficients)
    return np.where(is_large, series, near)


_ODD = [math.prod(range(1, 2 * k + 2, 2)) / 2**k for k in range(23)]
_EVEN = [2 * (k + 1) * c for k, c in enumerate(_ODD)]


def _profile_slopes(_, x, sigma, gamma):
    is_cauchy = sigma == 0
    scale = math.sqrt(0.5) / np.where(is_cauchy, 1, sigma)
    z = (x + 1j * gamma) * scale
    w, is_large = wofz(z), _is_large(z)
    half = z * w - 1j / _ROOT_PI
    slope = -_or_series(is_large, z, _ODD, 2, 2 * half)
    curvature = _or_series(is_large, z, _EVEN, 3, 4 * z * half - 2 * w)
    q = 1 / (x * x + np.where(is_cauchy, gamma, 1)**2)
    square = scale * scale / _ROOT_PI
    return (
        np.where(is_cauchy, -2 / math.pi * gamma * x * q * q, np.real(slope) * square),
        np.where(is_cauchy, 0, np.real(curvature) * (math.sqrt(0.5) * square)),
        np.where(is_cauchy, (x * x - gamma * gamma) * q * q / math.pi, -np.imag(slope) * square))


voigt_profile = with_slopes("ScipyVoigtProfile", special.voigt_profile, _profile_slopes)
