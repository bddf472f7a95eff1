"""Functions of mpmath for functions of `scipy.special`, with points and tolerances.

A tolerance above 1e-10 has a reason: SciPy's own values have that error, or the derivative is a
difference that cancels at some of the points.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest

mp = pytest.importorskip("mpmath")


@dataclass(frozen=True)
class Check:
    """Reference of one function, a list of them for several outputs (None: not checked)."""

    reference: Callable | list
    samples: tuple  # per argument a function of a generator and the number of points
    places: tuple  # arguments with a derivative
    tolerance: float = 1e-10
    reason: str = ""


def check(reference, *samples, places=None, tolerance=1e-10, reason=""):
    assert (tolerance == 1e-10) == (reason == "")
    return Check(
        reference, samples, tuple(range(len(samples))) if places is None else places, tolerance,
        reason)


# ---- points ----------------------------------------------------------------------------------


def spread(low, high, near=()):
    """Draw positive numbers of any size, a quarter of them near given points."""
    def draw(rng, n):
        x = np.exp(rng.uniform(np.log(low), np.log(high), n))
        return approach(rng, x, near)
    return draw


def signed(low, high, near=()):
    def draw(rng, n):
        return approach(rng, spread(low, high)(rng, n) * rng.choice([-1, 1], n), near)
    return draw


def flat(low, high, near=()):
    return lambda rng, n: approach(rng, rng.uniform(low, high, n), near)


def whole(low, high):
    return lambda rng, n: rng.integers(low, high + 1, n).astype(float)


def disc(low, high):
    """Draw complex numbers of any size and direction."""
    return lambda rng, n: spread(low, high)(rng, n) * np.exp(1j * rng.uniform(-3.1, 3.1, n))


def approach(rng, x, points):
    """Move a quarter of the numbers near some points, poles say."""
    if len(points):
        distance = rng.choice([-1, 1], len(x)) * 10.0**rng.uniform(-7, -1, len(x))
        x = np.where(rng.random(len(x)) < 0.25, rng.choice(points, len(x)) + distance, x)
    return x


# ---- functions -------------------------------------------------------------------------------


def _boxcox(x, lmbda):
    return mp.expm1(lmbda * mp.log(x)) / lmbda


def _inv_boxcox(y, lmbda):
    return mp.exp(mp.log1p(lmbda * y) / lmbda)


def _voigt(x, sigma, gamma):
    z = mp.mpc(x, gamma) / (sigma * mp.sqrt(2))
    return mp.re(mp.exp(-z * z) * mp.erfc(-1j * z)) / (sigma * mp.sqrt(2 * mp.pi))


def _dawsn(x):
    return mp.sqrt(mp.pi) / 2 * mp.exp(-x * x) * mp.erfi(x)


def _rc(x, y):
    return mp.elliprc(x, y)


ELEMENTARY = {
    "cbrt": check(lambda x: mp.sign(x) * mp.cbrt(abs(x)), signed(1e-8, 1e8)),
    "exp2": check(lambda x: mp.mpf(2)**x, signed(1e-8, 300)),
    "exp10": check(lambda x: mp.mpf(10)**x, signed(1e-8, 200)),
    "expm1": check(mp.expm1, signed(1e-8, 300)),
    "log1p": check(mp.log1p, spread(1e-8, 1e8)),
    "exprel": check(lambda x: mp.expm1(x) / x, signed(1e-8, 300)),
    "cosm1": check(lambda x: mp.cos(x) - 1, signed(1e-8, 100)),
    "sindg": check(lambda x: mp.sin(mp.radians(x)), signed(1e-3, 1e3)),
    "cosdg": check(lambda x: mp.cos(mp.radians(x)), signed(1e-3, 1e3)),
    "tandg": check(lambda x: mp.tan(mp.radians(x)), signed(1e-3, 1e3)),
    "cotdg": check(lambda x: mp.cot(mp.radians(x)), signed(1e-3, 1e3)),
    "radian": check(
        lambda d, m, s: mp.radians(d + m / 60 + s / 3600), *[spread(0.1, 60)] * 3),
    "powm1": check(lambda x, y: x**y - 1, spread(1e-3, 1e3), signed(1e-3, 20)),
    "boxcox": check(_boxcox, spread(1e-3, 1e3), signed(1e-8, 10)),
    "boxcox1p": check(lambda x, lmbda: _boxcox(1 + x, lmbda), spread(1e-8, 1e3), signed(1e-8, 10)),
    "inv_boxcox": check(_inv_boxcox, spread(1e-3, 10), spread(1e-8, 10)),
    "inv_boxcox1p": check(
        lambda y, lmbda: _inv_boxcox(y, lmbda) - 1, spread(1e-3, 10), spread(1e-8, 10)),
    "entr": check(lambda x: -x * mp.log(x), spread(1e-200, 1e100)),
    "rel_entr": check(
        lambda x, y: x * mp.log(x / y), spread(1e-8, 1e8), spread(1e-8, 1e8)),
    "kl_div": check(
        lambda x, y: x * mp.log(x / y) - x + y, spread(0.5, 2, [1]), spread(0.5, 2, [1])),
    "huber": check(
        lambda delta, r: r * r / 2 if abs(r) < delta else delta * (abs(r) - delta / 2),
        spread(1e-3, 1e3), signed(1e-3, 1e3)),
    "pseudo_huber": check(
        lambda delta, r: delta**2 * (mp.sqrt(1 + (r / delta)**2) - 1),
        spread(1e-3, 1e3), signed(1e-6, 1e6)),
}
INTEGRALS = {
    "exp1": check(mp.e1, spread(1e-8, 300)),
    "expi": check(mp.ei, signed(1e-8, 300)),
    "expn": check(mp.expint, whole(0, 8), spread(1e-3, 300), places=(1,)),
    "sici": check([mp.si, mp.ci], spread(1e-6, 1e3)),
    "shichi": check([mp.shi, mp.chi], spread(1e-6, 300)),
    "spence": check(lambda z: mp.polylog(2, 1 - z).real, spread(1e-8, 1e4, [1])),
    "fresnel": check([mp.fresnels, mp.fresnelc], signed(1e-3, 1e3)),
    "modfresnelp": check(
        [lambda x: mp.sqrt(mp.pi) / 2 * mp.expjpi(0.25) * mp.erfc(mp.expjpi(-0.25) * x),
         lambda x: mp.exp(-1j * x * x) * mp.erfc(mp.expjpi(-0.25) * x) / 2], signed(1e-3, 20)),
    "modfresnelm": check(
        [lambda x: mp.sqrt(mp.pi) / 2 * mp.expjpi(-0.25) * mp.erfc(mp.expjpi(0.25) * x),
         lambda x: mp.exp(1j * x * x) * mp.erfc(mp.expjpi(0.25) * x) / 2], signed(1e-3, 20)),
    "dawsn": check(_dawsn, signed(1e-6, 50)),
    "erfi": check(mp.erfi, signed(1e-6, 20)),
    "erfcx": check(lambda x: mp.exp(x * x) * mp.erfc(x), flat(-20, 100)),
    "wofz": check(lambda z: mp.exp(-z * z) * mp.erfc(-1j * z),
                  lambda rng, n: spread(1e-3, 40)(rng, n) * np.exp(1j * rng.uniform(0, 3.1, n))),
    "owens_t": check(
        lambda h, a: mp.quad(lambda t: mp.exp(-h * h * (1 + t * t) / 2) / (1 + t * t), [0, a])
        / (2 * mp.pi), flat(-5, 5), flat(-3, 3)),
    "voigt_profile": check(_voigt, flat(-30, 30), spread(1e-2, 10), spread(1e-3, 10)),
}
ELLIPTIC = {
    "ellipk": check(mp.ellipk, flat(-3, 1, [0, 1 - 0.1])),
    "ellipkm1": check(lambda p: mp.ellipk(1 - p), spread(1e-25, 3, [1])),
    "ellipe": check(mp.ellipe, flat(-3, 1, [0, 1 - 0.1])),
    "ellipkinc": check(mp.ellipf, signed(1e-3, 9), flat(-2, 0.999, [0])),
    "ellipeinc": check(mp.ellipe, signed(1e-3, 9), flat(-2, 0.999, [0])),
    "elliprc": check(_rc, spread(1e-3, 1e3, [1]), spread(1e-3, 1e3, [1])),
    "elliprf": check(mp.elliprf, *[spread(1e-3, 1e3, [1])] * 3),
    "elliprd": check(mp.elliprd, *[spread(1e-3, 1e3, [1])] * 3),
    "elliprg": check(mp.elliprg, *[spread(1e-3, 1e3, [1])] * 3),
    "elliprj": check(mp.elliprj, *[spread(1e-3, 1e3)] * 4),
    "ellipj": check(
        [lambda u, m: mp.ellipfun("sn", u, m=m), lambda u, m: mp.ellipfun("cn", u, m=m),
         lambda u, m: mp.ellipfun("dn", u, m=m), None], flat(-3, 3), flat(0.001, 0.999)),
    "agm": check(mp.agm, spread(1e-3, 1e3, [1]), spread(1e-3, 1e3, [1])),
}
REFERENCES = {**ELEMENTARY, **INTEGRALS, **ELLIPTIC}
