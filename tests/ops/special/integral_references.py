"""Integrals of Bessel functions, Kelvin's, Wright's and parabolic cylinder functions by mpmath.

References of `references.py`. The derivative of an integral is its integrand.
"""

import pytest

from tests.ops.special.checks import (
    check,
    either,
    flat,
    signed,
    slope,
    spread,
    whole,
    with_derivative,
    with_slope,
)

mp = pytest.importorskip("mpmath")

# ---- integrals of Bessel, Struve and Airy functions from 0, or to infinity -------------------


def _over(function, sign=1, less=0):
    return with_derivative(lambda x: sign * (function(0, x) - less) / x)


AT_ZEROS = 1e-4
ZERO_OF_J0, ZERO_OF_Y0 = float(mp.besseljzero(0, 1)), float(mp.besselyzero(0, 1))
ZEROS_OF_H0 = [float(mp.findroot(lambda x: mp.struveh(0, x), x)) for x in (4.3, 6.8)]
INTEGRALS_OF_BESSEL = {
    "itj0y0": check(
        [with_derivative(lambda x: mp.besselj(0, x)), with_derivative(lambda x: mp.bessely(0, x))],
        spread(1e-6, 60, [ZERO_OF_J0, ZERO_OF_Y0], AT_ZEROS)),
    "iti0k0": check(
        [with_derivative(lambda x: mp.besseli(0, x)), with_derivative(lambda x: mp.besselk(0, x))],
        spread(1e-6, 300)),
    "it2j0y0": check(
        [_over(mp.besselj, -1, less=1), _over(mp.bessely, -1)],
        spread(1e-6, 60, [1, ZERO_OF_Y0], AT_ZEROS)),
    "it2i0k0": check([_over(mp.besseli, less=1), _over(mp.besselk, -1)], spread(1e-6, 300, [1])),
    "itstruve0": check(
        with_derivative(lambda x: mp.struveh(0, x)), signed(1e-6, 60, ZEROS_OF_H0, AT_ZEROS)),
    "itmodstruve0": check(with_derivative(lambda x: mp.struvel(0, x)), signed(1e-6, 300, [5])),
    "it2struve0": check(_over(mp.struveh, -1), signed(1e-6, 60, ZEROS_OF_H0, AT_ZEROS)),
    "itairy": check(
        [with_derivative(lambda x: mp.airyai(x)), with_derivative(lambda x: mp.airybi(x)),
         with_derivative(lambda x: mp.airyai(-x)), with_derivative(lambda x: mp.airybi(-x))],
        signed(1e-6, 20, [-float(mp.airyaizero(1)), -float(mp.airybizero(1))], AT_ZEROS)),
}


def _besselpoly(a, lmb, nu):
    """Integrate the power series of the Bessel function."""
    half = (lmb + nu + 1) / 2
    return a**nu * mp.rgamma(nu + 1) / (2 * half) * mp.hyp1f2(half, nu + 1, half + 1, -a * a)


# ---- functions of Kelvin ---------------------------------------------------------------------


def _be(x):
    return mp.besselj(0, x * mp.expjpi(mp.mpf(3) / 4))


def _ke(x):
    """Sum the power series (DLMF 10.31.2), several times faster than `mpmath.besselk`."""
    with mp.extradps(int(0.7 * x) + 10):  # the sums are larger by the exponential of sqrt(2) x
        z = x * mp.expjpi(mp.mpf(1) / 4)
        term = of_first_kind = mp.mpc(1)
        total = harmonic = mp.mpf(0)
        k = 0
        while k < x or abs(term) > mp.eps:
            k += 1
            term *= z * z / (4 * k * k)
            harmonic += mp.mpf(1) / k
            of_first_kind += term
            total += harmonic * term
        return total - (mp.log(z / 2) + mp.euler) * of_first_kind


def _kelvin():
    """Yield the four functions and their derivatives together, and each of the eight parts."""
    reason = "SciPy's values have errors of 1e-9 at 10, where both of its series end"
    together = [_be, _ke, slope(_be), slope(_ke)]
    yield "kelvin", check(together, either(spread(1e-6, 6), spread(15, 200)))
    yield "kelvin from 6 to 15", check(together, flat(6, 15), tolerance=1e-8, reason=reason)
    for name, part, function in [
            ("ber", mp.re, _be), ("bei", mp.im, _be), ("ker", mp.re, _ke), ("kei", mp.im, _ke)]:
        def value(x, part=part, function=function):
            return part(function(x))

        for suffix, reference in [("", value), ("p", slope(value))]:
            yield name + suffix, check(reference, either(spread(1e-3, 4), spread(20, 100)))
            yield f"{name}{suffix} from 4 to 20", check(
                reference, flat(4, 20), tolerance=1e-6, reason=f"{reason}, more beside zeros")


# ---- parabolic cylinder functions ------------------------------------------------------------


def _pbvv(v, x):
    return mp.pcfv(-v - 0.5, x)


def _pbwa(a, x):
    """Sum the power series from its first coefficients (DLMF 12.14.2-3)."""
    ratio = mp.sqrt(abs(mp.gamma(mp.mpc(0.25, a / 2)) / mp.gamma(mp.mpc(0.75, a / 2))))
    series = [ratio / mp.mpf(2)**0.75, -1 / (ratio * mp.mpf(2)**0.25)]
    for k in range(320):  # enough for |x| < 5 and 80 digits
        before = series[k - 2] / 4 if k > 1 else 0
        series.append((a * series[k] - before) / ((k + 1) * (k + 2)))
    return mp.fsum(c * x**k for k, c in enumerate(series))


def _between(low, high):
    """Draw whole orders, and orders off them."""
    return either(whole(low, high), _off_whole(low, high))


def _off_whole(low, high):
    return lambda rng, n: whole(low, high - 1)(rng, n) + flat(0.1, 0.9)(rng, n)


def _near_whole(low, high):
    return lambda rng, n: whole(low, high)(rng, n) + signed(1e-5, 0.1)(rng, n)


# ---- functions of Wright ---------------------------------------------------------------------


def _wright(a, b, x):
    """Sum the power series (DLMF 10.46.1) of positive terms, which rise and then fall."""
    power, total, before, k = mp.mpf(1), mp.mpf(0), mp.mpf(0), 0
    while True:
        term = power * mp.rgamma(a * k + b)
        total += term
        if 0 < term < before and term < total * mp.eps:
            return total
        k += 1
        power *= x / k
        before = term


def _log_wright(a, b, x):
    return mp.log(_wright(a, b, x))


# ---- records ---------------------------------------------------------------------------------

BESSELPOLY = (flat(-0.4, 6), flat(-0.4, 6, [0, 1]))
PBVV = with_slope(_pbvv)
PBWA = with_slope(_pbwa)
WRIGHT = (either(spread(1e-6, 10), flat(0, 5)), either(spread(1e-3, 100), flat(0, 10)))
OF_WRIGHT = "SciPy's values have errors of 1e-6 for a between 0.01 and 0.7"

INTEGRALS = {
    **INTEGRALS_OF_BESSEL,
    "besselpoly": check(_besselpoly, spread(1e-3, 3), *BESSELPOLY, places=(0,)),
    "besselpoly beyond 3": check(
        _besselpoly, flat(3, 10), *BESSELPOLY, places=(0,), tolerance=1e-5,
        reason="terms of SciPy's series cancel, its values have errors of 1e-7 at 10"),
    "jn": check(mp.besselj, whole(-3, 9), spread(1e-3, 60), places=(1,)),
    **dict(_kelvin()),
    "pbvv": check(PBVV, _between(-9, 4), flat(-5.7, 5.7), places=(1,)),
    "pbvv of orders near whole ones": check(
        PBVV, _near_whole(-9, 4), flat(-5.7, 5.7), places=(1,), tolerance=1e-4,
        reason="SciPy's values have errors of 1e-10 over the distance to a whole order"),
    "pbvv of orders below -1 beyond 5.7": check(
        PBVV, _between(-9, -1), signed(5.7, 20), places=(1,)),
    "pbvv of orders above -1 beyond 5.7": check(
        PBVV, _off_whole(-1, 4), signed(5.7, 20), places=(1,), tolerance=1e-3,
        reason="SciPy's asymptotic series has errors of 1e-7 at its nearest argument"),
    "pbwa": check(PBWA, flat(-5, 2), flat(-5, 5), places=(1,)),
    "pbwa of a above 2": check(
        PBWA, flat(2, 5), flat(-5, 5), places=(1,), tolerance=1e-7,
        reason="SciPy's two solutions, which grow, cancel in their difference"),
    "wright_bessel": check(_wright, *WRIGHT, spread(1e-3, 200, [1, 2]), places=(2,)),
    "wright_bessel beyond 200": check(
        _wright, *WRIGHT, flat(200, 600), places=(2,), tolerance=1e-5, reason=OF_WRIGHT),
    "log_wright_bessel": check(_log_wright, *WRIGHT, spread(1e-3, 200, [1, 2]), places=(2,)),
    "log_wright_bessel beyond 200": check(
        _log_wright, *WRIGHT, flat(200, 1000), places=(2,), tolerance=1e-5, reason=OF_WRIGHT),
}
