"""Logarithms of tail probabilities that underflow, against mpmath at 40 digits."""

import numpy as np
import pytest

import cytape
from cytape.ops.probabilities import log_probabilities as logs
from tests.cases import each
from tests.ways import check

mp = pytest.importorskip("mpmath")
stats = pytest.importorskip("cytape.scipy.stats")


def gamma(a, x):
    return mp.gammainc(a, 0, x, regularized=True)


def gammac(a, x):
    return mp.gammainc(a, x, mp.inf, regularized=True)


def beta(a, b, x):
    return mp.betainc(a, b, 0, x, regularized=True)


def t_sf(t, df):
    return beta(df / 2, mp.mpf(0.5), df / (df + t * t)) / 2


@each("f, reference, points", [
    (stats.gamma.logsf, lambda x, a: gammac(a, x), [(1000.0, 2.0), (3000.0, 1000.0), (3.0, 2.5)]),
    (stats.gamma.logcdf, lambda x, a: gamma(a, x), [(1e-200, 3.0), (100.0, 1000.0), (1.0, 300.0)]),
    (stats.chi2.logsf, lambda x, df: gammac(df / 2, x / 2), [(3000.0, 3.5)]),
    (stats.invgamma.logcdf, lambda x, a: gammac(a, 1 / x), [(1e-3, 0.7)]),
    (lambda mu: stats.poisson.logsf(300, mu), lambda mu: gamma(301, mu), [(2.0,)]),
    (stats.t.logsf, t_sf, [(1e200, 3.0), (50.0, 1000.0), (60.0, 1e9), (1e20, 100.0), (1.0, 3.0)]),
    (stats.beta.logcdf, lambda x, a, b: beta(a, b, x),
     [(1e-100, 5.0, 0.5), (0.1, 600.0, 700.0), (0.9, 5e3, 3.0), (0.3, 2.0, 3.0)]),
    (stats.beta.logsf, lambda x, a, b: beta(b, a, 1 - x), [(0.9, 700.0, 600.0), (0.2, 2.0, 5e3)]),
    (lambda p: stats.binom.logsf(900, 1000.0, p), lambda p: beta(901, 100, p), [(0.1,)]),
    (lambda n, p: stats.nbinom.logsf(3000, n, p), lambda n, p: beta(3001, n, 1 - p), [(5.0, 0.4)]),
    (logs.log_mass, lambda a, b: (mp.erfc(a / mp.sqrt(2)) - mp.erfc(b / mp.sqrt(2))) / 2,
     [(-1.0, 2.0), (3.0, 5.0), (100.0, 100.5), (200.0, 200.001), (-0.5, -0.4999), (-9.0, -7.0)]),
    (stats.f.logsf, lambda x, n, d: beta(d / 2, n / 2, d / (d + n * x)), [(1e6, 4.0, 200.0)])])
def test_tails(f, reference, points):
    for x in points:
        places = tuple(range(len(x)))
        with mp.workdps(60):
            exact = [mp.mpf(v) for v in x]
            value, slopes = mp.log(reference(*exact)), []
            for i in places:
                ends = [mp.log(reference(*exact[:i], exact[i] + h, *exact[i + 1:]))
                        for h in (-1e-18 * exact[i], 1e-18 * exact[i])]
                slopes.append((ends[1] - ends[0]) / (2e-18 * exact[i]))
        found, gradient = cytape.value_and_grad(f, argnums=places)(*x)
        tangents = [cytape.jvp(
            lambda v, i=i: f(*x[:i], v, *x[i + 1:]), (x[i],), (1.0,))[1] for i in places]  # noqa: B023
        np.testing.assert_allclose(found, float(value), 1e-13)
        for derivatives in (gradient, tangents):
            np.testing.assert_allclose(derivatives, [float(s) for s in slopes], 1e-11)


@each("f, x", [  # second derivatives by differences of first ones
    (lambda x: stats.gamma.logsf(x[0], x[1]), [900.0, 2.5]),
    (lambda x: stats.gamma.logcdf(x[0], x[1]), [50.0, 600.0]),
    (lambda x: stats.beta.logsf(x[0], x[1], x[2]), [0.9, 600.0, 700.0]),
    (lambda x: stats.f.logcdf(x[0], x[1], x[2]), [1e-3, 400.0, 30.0]),
    (lambda x: stats.t.logsf(x[0], x[1]), [300.0, 90.0]),
    (lambda x: stats.t.logsf(x[0], x[1]), [1e50, 9.0]),
    (lambda x: logs.log_oddsc(x[0], x[1], x[2]), [1.5, 2.5, 0.8])])
def test_second_derivatives(f, x):
    x, slope = np.array(x), cytape.grad(f)
    steps = 1e-5 * np.diag(x)
    expected = [(slope(x + h) - slope(x - h)) / (2 * h.sum()) for h in steps]
    scale = np.sqrt(np.abs(np.outer(np.diag(expected), np.diag(expected))))
    np.testing.assert_allclose(cytape.hessian(f)(x) / scale, expected / scale, 1e-6, 1e-5)


def test_squares_of_t_that_overflow():
    slope = cytape.grad(stats.t.logcdf)
    for t in (-1e150, -1e160, -1e300):
        np.testing.assert_allclose(
            cytape.grad(slope, argnums=(0, 1))(t, 3.0), [3 / t / t, -1 / t], 1e-9, 1e-318)


def test_ends_and_single_precision():
    for f, x, expected in [
            (stats.gamma.logsf, (0.0, 1.0), (0.0, -1.0)),
            (stats.beta.logsf, (0.0, 1.0, 3.0), (0.0, -3.0)),
            (stats.beta.logcdf, (1.0, 3.0, 1.0), (0.0, 3.0)),
            (stats.t.logsf, (0.0, 1.0), (-np.log(2), -2 / np.pi)),
            (stats.t.logsf, (40.0, np.inf), (-804.60844201, -40.02496886)),
            (stats.gamma.logsf, (np.float32(500), np.float32(1)), (-500.0, -1.0))]:
        found = cytape.value_and_grad(f)(*x)
        np.testing.assert_allclose(found, expected, 1e-7)
        assert np.asarray(found[0]).dtype == np.asarray(x[0]).dtype


@each("call", [
    lambda x: stats.gamma.logsf(400 * x[0], x[1], scale=x[2]),
    lambda x: stats.t.logcdf(-1e60 * x[0], 9 * x[1], x[2])])
def test_all_ways(call):
    check(call, call, np.array([2.7, 1.3, 1.1]), ways=["function", "vmap", "graph"])


def test_small_tail_quantiles_of_exponnorm():
    for q, k, expected in [(1e-25, 1.5, 86.68027432061005), (1e-300, 0.01, 37.0595869677682)]:
        found, slope = cytape.value_and_grad(stats.exponnorm.isf)(q, k)
        np.testing.assert_allclose(found, expected, 1e-12)
        np.testing.assert_allclose(
            slope * cytape.grad(stats.exponnorm.sf)(expected, k), 1, 1e-9)
    with np.errstate(all="ignore"):
        found = cytape.grad(stats.exponnorm.logcdf, argnums=(0, 1))(-60.0, 0.7)
    np.testing.assert_allclose(found, [60.03291896108, -1.395375409728], 1e-11)


@each("z, c, cdf", [(1e-10, 0.0, 2e-10 - 1e-20), (1e-20, 0.0, 2e-20), (1e-20, 1.0, 1e-40)])
def test_triangular_probabilities_do_not_cancel(z, c, cdf):
    np.testing.assert_allclose(stats.triang.cdf(cytape.constant(z), c), cdf, 1e-14)
    np.testing.assert_allclose(stats.triang.ppf(cytape.constant(cdf), c), z, 1e-14)
