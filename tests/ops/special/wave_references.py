"""Mathieu and spheroidal wave functions at high precision, by eigenvectors of their recurrences.

References of `references.py`, from DLMF 28.4, 28.24, 30.8 and 30.11 with SciPy's normalisation.
"""

import functools

import numpy as np
import pytest

from tests.ops.special.checks import check, flat, spread, whole, with_derivative, with_slope

mp = pytest.importorskip("mpmath")
special = pytest.importorskip("scipy.special")


def _eigenvector(diagonal, off, place):
    """Return an eigenvalue of a symmetric tridiagonal matrix, by its place, and the vector.

    Iterations of Rayleigh's quotient make the double precision pair exact. The components follow
    from ratios of neighbours, from both ends, as small ones would have no relative precision.
    """
    n = len(diagonal)
    matrix = np.diag(np.array(diagonal, float))
    matrix += np.diag(np.array(off, float), 1) + np.diag(np.array(off, float), -1)
    values, vectors = np.linalg.eigh(matrix)
    value, vector = mp.mpf(values[place]), [mp.mpf(x) for x in vectors[:, place]]
    peak = int(np.argmax(np.abs(vectors[:, place])))
    while True:
        upward, downward = [mp.mpf(0)] * n, [mp.mpf(0)] * n  # of a component to the one nearer
        for k in range(peak):
            upward[k] = -off[k] / (diagonal[k] - value + (off[k - 1] * upward[k - 1] if k else 0))
        for k in range(n - 1, peak, -1):
            downward[k] = -off[k - 1] / (
                diagonal[k] - value + (off[k] * downward[k + 1] if k < n - 1 else 0))
        vector[peak] = mp.mpf(1)
        for k in range(peak - 1, -1, -1):
            vector[k] = upward[k] * vector[k + 1]
        for k in range(peak + 1, n):
            vector[k] = downward[k] * vector[k - 1]
        square = mp.fsum(x * x for x in vector)
        rest = diagonal[peak] - value
        if peak:
            rest += off[peak - 1] * vector[peak - 1]
        if peak < n - 1:
            rest += off[peak] * vector[peak + 1]
        value += rest / square  # Rayleigh's quotient
        if abs(rest) < mp.eps * 100 * max(1, abs(value)):
            return value, [x / mp.sqrt(square) for x in vector]


# ---- functions of Mathieu --------------------------------------------------------------------


@functools.lru_cache(8)
def _mathieu(kind, m, q, n=60):
    """Return the characteristic value, the orders and the coefficients."""
    parity = m % 2
    first = parity if kind == "cos" or parity else 2
    orders = [first + 2 * k for k in range(n)]
    diagonal, off = [mp.mpf(k * k) for k in orders], [q] * (n - 1)
    if first == 1:
        diagonal[0] += q if kind == "cos" else -q
    if first == 0:
        off[0] *= mp.sqrt(2)
    value, vector = _eigenvector(diagonal, off, (m - first) // 2)
    if first == 0:
        vector[0] /= mp.sqrt(2)
    if mp.fsum(x * (k if kind == "sin" else 1) for x, k in zip(vector, orders, strict=True)) < 0:
        vector = [-x for x in vector]
    return value, orders, vector


def characteristic(kind):
    return lambda m, q: _mathieu(kind, int(m), q)[0]


def angular(kind, derivative):
    """Return a function of degrees, or its derivative in radians."""
    def reference(m, q, x):
        x = mp.radians(x)
        _, orders, vector = _mathieu(kind, int(m), q)
        function = getattr(mp, kind)
        if derivative:
            function = mp.cos if kind == "sin" else lambda t: -mp.sin(t)
        return mp.fsum(a * function(k * x) * (k if derivative else 1)
                       for a, k in zip(vector, orders, strict=True))
    return reference


def _orders(bessel, first, n, z):
    """Return functions of n orders by recurrence, in the direction in which they grow."""
    if bessel is mp.besselj:
        values = [bessel(first + k, z) for k in (n - 1, n - 2)]
        for k in range(n - 2, 0, -1):
            values.append(2 * (first + k) / z * values[-1] - values[-2])
        return values[::-1]
    values = [bessel(first + k, z) for k in (0, 1)]
    for k in range(1, n - 1):
        values.append(2 * (first + k) / z * values[-1] - values[-2])
    return values


def radial(kind, bessel):
    """Return a modified function, a sum of products of Bessel functions."""
    def reference(m, q, x):
        m = int(m)
        _, orders, vector = _mathieu(kind, m, q)
        inner, outer = mp.sqrt(q) * mp.exp(-x), mp.sqrt(q) * mp.exp(x)
        parity = m % 2
        shift = parity if kind == "cos" or parity else 2
        top = len(orders) + 2
        j, c = _orders(mp.besselj, 0, top, inner), _orders(bessel, 0, top, outer)
        sign = 1 if kind == "cos" else -1
        total = mp.fsum(
            (-1)**k * a * (j[k] * c[k + shift] + sign * j[k + shift] * c[k])
            for k, a in enumerate(vector))
        half = (m - shift) // 2
        return (-1)**half * total / vector[0] / (2 if shift == 0 else 1)
    return reference


# ---- spheroidal wave functions ---------------------------------------------------------------


@functools.lru_cache(8)
def _spheroidal(sign, m, n, c, size=60):
    """Return the characteristic value, degrees less m, and coefficients of Legendre functions."""
    first = (n - m) % 2
    orders = [first + 2 * k for k in range(size)]
    square = sign * c * c
    diagonal = [
        (m + r) * (m + r + 1) + square * (2 * (m + r) * (m + r + 1) - 2 * m * m - 1)
        / mp.mpf((2 * m + 2 * r - 1) * (2 * m + 2 * r + 3)) for r in orders]
    off = [
        square / (2 * m + 2 * r + 3) * mp.sqrt(
            mp.mpf((2 * m + r + 2) * (2 * m + r + 1) * (r + 2) * (r + 1))
            / ((2 * m + 2 * r + 1) * (2 * m + 2 * r + 5))) for r in orders[:-1]]
    value, vector = _eigenvector(diagonal, off, (n - m) // 2)
    return value, orders, [
        x * mp.sqrt((2 * (m + r) + 1) * mp.factorial(r) / mp.factorial(2 * m + r))
        for r, x in zip(orders, vector, strict=True)]


def spheroidal_value(sign):
    return lambda m, n, c: _spheroidal(sign, int(m), int(n), c)[0]


def _legendre_at_0(m, n):
    """Return the associated Legendre function, or for odd n - m its slope, at 0 (DLMF 14.5)."""
    if (n - m) % 2 == 0:
        return mp.mpf(2)**m * mp.sqrt(mp.pi) * mp.rgamma(
            mp.mpf(n - m) / 2 + 1) * mp.rgamma(mp.mpf(1 - n - m) / 2)
    return -mp.mpf(2)**(m + 1) * mp.sqrt(mp.pi) * mp.rgamma(
        mp.mpf(n - m + 1) / 2) * mp.rgamma(mp.mpf(-n - m) / 2)


def _legendres(m, top, x):
    """Return Legendre functions of the degrees m to top, without the phase (-1)**m."""
    values = [mp.mpf(0), mp.fac2(2 * m - 1) * (1 - x * x)**(mp.mpf(m) / 2)]
    for n in range(m + 1, top + 1):
        values.append(((2 * n - 1) * x * values[-1] - (n + m - 1) * values[-2]) / (n - m))
    return values[1:]


def spheroidal_angular(sign, has_value=False):
    def reference(m, n, c, *others):
        m, n, x = int(m), int(n), others[-1]
        _, orders, vector = _spheroidal(sign, m, n, c)
        at_0 = mp.fsum(d * _legendre_at_0(m, m + r) for r, d in zip(orders, vector, strict=True))
        values = _legendres(m, m + orders[-1], x)
        return (-1)**m * _legendre_at_0(m, n) / at_0 * (-1)**m * mp.fsum(
            d * values[r] for r, d in zip(orders, vector, strict=True))
    return reference


def spheroidal_radial(sign, bessel):
    def reference(m, n, c, *others):
        m, n, x = int(m), int(n), others[-1]
        _, orders, vector = _spheroidal(sign, m, n, c)
        weights = [d * mp.factorial(2 * m + r) / mp.factorial(r)
                   for r, d in zip(orders, vector, strict=True)]
        z = c * x
        values = _orders(bessel, m + mp.mpf("0.5"), orders[-1] + 1, z)
        total = mp.sqrt(mp.pi / (2 * z)) * mp.fsum(
            (-1)**((r + m - n) // 2) * w * values[r]
            for r, w in zip(orders, weights, strict=True))
        return (1 - sign / (x * x))**(mp.mpf(m) / 2) * total / mp.fsum(weights)
    return reference


def _polynomial(coefficients, x):
    return mp.fsum(c * x**k for k, c in enumerate(coefficients))


def _step(ode, here, step, y, dy):
    """Return a solution of p y'' + q y' + r y = 0 and its slope after a step, by Taylor's series.

    The step is at most half of the radius of convergence.
    """
    p, q, r = [
        [mp.fsum(c * mp.binomial(k, j) * here**(k - j) for k, c in enumerate(f) if k >= j)
         for j in range(5)] for f in ode]
    series = [y, dy]
    for k in range(mp.mp.prec + 10):
        total = mp.fsum(
            (p[j] * (k + 2 - j) * (k + 1 - j) * series[k + 2 - j] if 0 < j <= k + 1 else 0)
            + (q[j] * (k + 1 - j) * series[k + 1 - j] if j <= k else 0)
            + (r[j] * series[k - j] if j <= k else 0) for j in range(5))
        series.append(-total / (p[0] * (k + 2) * (k + 1)))
    return _polynomial(series, step), _polynomial(
        [k * c for k, c in enumerate(series)][1:], step)


@functools.lru_cache(10_000)  # points: their values are those of two outputs and functions
def _radial_2(sign, m, n, c, x):
    """Return the first and the second derivative (DLMF 30.2.1, 30.11.3).

    The series converges fast at 10, from where the differential equation is solved inward.
    """
    value, here = _spheroidal(sign, int(m), int(n), c)[0], mp.mpf(10)
    ode = (  # in powers of x
        [1, 0, -2 * sign, 0, 1], [0, -2 * sign, 0, 2],
        [sign * (value - m * m), 0, -value - sign * c * c, 0, c * c])
    series = spheroidal_radial(sign, mp.bessely)
    y, dy = [mp.diff(lambda x: series(m, n, c, x), here, k) for k in (0, 1)]
    while here != x:
        distance = abs(here - 1) if sign > 0 else mp.hypot(here, 1)  # to singularities
        after = max(x, here - distance / 2)
        y, dy = _step(ode, here, after - here, y, dy)
        here = after
    p, q, r = [_polynomial(f, x) for f in ode]
    return dy, -(q * dy + r * y) / p


def spheroidal_radial_2(sign):
    """Return references of both outputs."""
    return [with_derivative(lambda m, n, c, *others, i=i: _radial_2(sign, m, n, c, others[-1])[i])
            for i in (0, 1)]


# ---- records ---------------------------------------------------------------------------------

OF_ORDER_6 = {
    "tolerance": 1e-7, "reason": "terms of SciPy's series cancel for q below 1, to errors of 1e-8"}
def _where_ordered(kind, *samples):
    """Draw points where SciPy's characteristic values of two orders have their order.

    At some points they have not: `mathieu_a(4, 17.48)` is 3.2476 instead of 26.7702.
    """
    def draw(rng, n):
        given = [sample(rng, 2 * n + 20) for sample in samples]
        m, q, *_ = given
        lowest = 0 if kind == "cos" else 1
        value = special.mathieu_a if kind == "cos" else special.mathieu_b
        below = np.where(m > lowest, value(np.maximum(m - 1, lowest), q), -np.inf)
        kept = np.flatnonzero(below < value(m, q))[:n]
        return [x[kept] for x in given]
    return draw


MATHIEU = {
    **{name: check(characteristic(kind), whole(low, 12), spread(1e-3, 300), places=(1,))
       for name, kind, low in [("mathieu_a", "cos", 0), ("mathieu_b", "sin", 1)]},
    **{name: check(
        [angular(kind, derivative) for derivative in (False, True)], _where_ordered(
            kind, whole(low, 9), spread(1e-2, 30), flat(-180, 360)), joint=True, places=(2,))
       for name, kind, low in [("mathieu_cem", "cos", 0), ("mathieu_sem", "sin", 1)]},
    **{name: check(
        with_slope(radial(kind, bessel)), _where_ordered(
            kind, orders, spread(0.3, 20), flat(0.01, 2)), joint=True, places=(2,), **facts)
       for name, kind, bessel, orders, facts in [
           ("mathieu_modcem1", "cos", mp.besselj, whole(0, 5), {}),
           ("mathieu_modcem1 of order 6", "cos", mp.besselj, whole(6, 6), OF_ORDER_6),
           ("mathieu_modcem2", "cos", mp.bessely, whole(0, 6), {}),
           ("mathieu_modsem1", "sin", mp.besselj, whole(1, 5), {}),
           ("mathieu_modsem1 of order 6", "sin", mp.besselj, whole(6, 6), OF_ORDER_6),
           ("mathieu_modsem2", "sin", mp.bessely, whole(1, 6), {})]},
}


def _modes(draw_c, *others, cv=None):
    """Draw orders m <= n, the parameter, and other arguments; `cv` inserts the value."""
    def draw(rng, n):
        m = whole(0, 3)(rng, n)
        degree = m + whole(0, 5)(rng, n)
        c = draw_c(rng, n)
        value = [] if cv is None else [getattr(special, cv)(m, degree, c)]
        return [m, degree, c, *value, *[other(rng, n) for other in others]]
    return draw


SPHEROIDAL = {
    **{f"{kind}_cv": check(
        spheroidal_value(sign), _modes(spread(1e-2, 20)), joint=True, places=(2,))
       for kind, sign in [("pro", 1), ("obl", -1)]},
    **{f"{kind}_{name}{suffix}": check(
        with_slope(reference(sign)),
        _modes(spread(0.1, 8), x, cv=f"{kind}_cv" if suffix else None),
        joint=True, places=(4 if suffix else 3,))
       for kind, sign, xs in [("pro", 1, flat(1.01, 4)), ("obl", -1, flat(0.01, 4))]
       for name, reference, x in [
           ("ang1", spheroidal_angular, flat(-0.99, 0.99)),
           ("rad1", lambda sign: spheroidal_radial(sign, mp.besselj), xs)]
       for suffix in ("", "_cv")},
    **{f"{kind}_rad2{suffix}{part}": check(
        spheroidal_radial_2(sign), _modes(spread(0.1, 8), x, cv=f"{kind}_cv" if suffix else None),
        joint=True, places=(4 if suffix else 3,), **facts)
       # nearer to the singularities, SciPy's values have errors of any size
       for kind, part, sign, x, facts in [
           ("pro", "", 1, flat(3, 6), {}),
           ("pro", " from 2 to 3", 1, flat(2, 3), {
               "tolerance": 1e-2, "reason": "SciPy's values have errors of 4e-3"}),
           ("obl", "", -1, flat(3, 5), {})]
       for suffix in ("", "_cv")},
}
