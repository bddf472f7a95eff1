"""Distributions of Smirnov, Kolmogorov and Tukey, and quantiles of the normal one.

References of `references.py`. Points are drawn by probabilities, in both tails.
"""

import math

import numpy as np
import pytest

from tests.ops.special.checks import check, either, flat, signed, spread
from tests.ops.special.distribution_references import Inverse, at_quantiles

mp = pytest.importorskip("mpmath")


def smirnov(n, d):
    """Return the probability of a largest difference above d, by a sum of positive terms."""
    n = int(n)
    return d * mp.fsum(
        math.comb(n, k) * (d + mp.mpf(k) / n)**(k - 1) * (1 - d - mp.mpf(k) / n)**(n - k)
        for k in range(int(mp.floor(n * (1 - d))) + 1))


class _InverseSmirnov(Inverse):
    """Inverse of `smirnov`, which is (1 - d)**n where d is near 1."""

    def slope(self, place, n, p):
        return -p**(1 / n - 1) / n if p <= n**-n else super().slope(place, n, p)


def kolmogorov_below(x):
    """Return the probability of a largest difference below x, by a series for small x."""
    q = mp.pi**2 / (8 * x * x)
    return mp.sqrt(2 * mp.pi) / x * mp.fsum(mp.exp(-(2 * k - 1)**2 * q) for k in range(1, 14))


def kolmogorov_above(x):
    return 2 * mp.fsum((-1)**(k - 1) * mp.exp(-2 * k * k * x * x) for k in range(1, 14))


def kolmogorov(x):
    return 1 - kolmogorov_below(x) if x < 1 else kolmogorov_above(x)


def tukey_quantile(p, lmbda):
    return (p**lmbda - (1 - p)**lmbda) / lmbda


def log_normal(x):
    return mp.log1p(-mp.erfc(x / mp.sqrt(2)) / 2) if x > 0 else mp.log(mp.ncdf(x))


# ---- points ----------------------------------------------------------------------------------


def counts(low, high):
    """Draw whole numbers of any size."""
    return lambda rng, n: np.floor(spread(low, high)(rng, n))


def complement(draw):
    return lambda rng, n: 1 - draw(rng, n)


TAILS = either(spread(1e-280, 0.5), complement(spread(1e-15, 0.5)))


def _tukey(rng, n):
    """Draw quantiles and shapes, less near ends of the support than their rounding error."""
    lmbda = signed(1e-3, 5)(rng, n)
    tail = np.maximum(spread(1e-8, 0.5)(rng, n), np.where(lmbda > 0, 10**(-5 / np.abs(lmbda)), 0))
    x = (tail**lmbda - (1 - tail)**lmbda) / lmbda
    return [x * rng.choice([-1, 1], n), lmbda]


def _smirnov(rng, n):
    number, d = at_quantiles("smirnovi", counts(1, 300))(rng, n)
    return [number, np.where(rng.random(n) < 0.5, d, rng.uniform(0, 1, n))]


def _normal_scale(rng, n):
    """Draw a mean, a probability, and a point on the side of the mean where the probability is."""
    mean, p, distance = flat(-5, 5)(rng, n), TAILS(rng, n), spread(1e-3, 1e3)(rng, n)
    return [mean, p, mean + np.where(p < 0.5, -distance, distance)]


QUANTILES = {
    "smirnov": check(smirnov, _smirnov, joint=True, places=(1,)),
    "smirnovi": check(_InverseSmirnov("smirnovi", 1, smirnov), counts(1, 300), TAILS, places=(1,)),
    "kolmogorov": check(
        lambda x: -kolmogorov_below(x) if x < 1 else kolmogorov_above(x), flat(0.05, 18)),
    "kolmogi": check(Inverse("kolmogi", 0, kolmogorov), TAILS),
    "tklmbda": check(Inverse("tklmbda", 0, tukey_quantile), _tukey, joint=True, places=(0, 1)),
    "erfcinv": check(Inverse("erfcinv", 0, mp.erfc), lambda rng, n: 2 * TAILS(rng, n)),
    "ndtri": check(Inverse("ndtri", 0, mp.ncdf), TAILS),
    "ndtri_exp": check(
        Inverse("ndtri_exp", 0, log_normal), lambda rng, n: -spread(1e-280, 1e10)(rng, n)),
    "nrdtrimn": check(
        Inverse("nrdtrimn", 0, lambda mean, scale, x: mp.ncdf((x - mean) / scale)),
        TAILS, spread(1e-3, 1e3), signed(1e-3, 1e3)),
    "nrdtrisd": check(
        Inverse("nrdtrisd", 1, lambda mean, scale, x: mp.ncdf((x - mean) / scale)),
        _normal_scale, joint=True, places=(0, 1, 2)),
}
