"""Distributions by quadrature: values, derivatives, tails, places."""

import numpy as np
import pytest

import cytape
from tests.cases import each
from tests.scipy.test_distributions import differences
from tests.ways import check

stats = pytest.importorskip("scipy.stats")
ours = pytest.importorskip("cytape.scipy.stats")

POINTS = [-40.0, -3.0, -0.3, 0.0, 0.4, 1.6, 25.0]
SHAPES = {
    "nct": (3.5, 0.7), "genhyperbolic": (0.7, 1.5, 0.5), "norminvgauss": (1.5, 0.5),
    "geninvgauss": (0.7, 1.3), "levy_stable": (1.5, 0.4),
    "gausshyper": (1.5, 2.5, 2.0, 0.7), "studentized_range": (3.0, 8.0)}


@each("name", SHAPES)
@each("method", ["pdf", "logpdf", "cdf"])
def test_values_are_scipys(name, method):
    function, expected = [getattr(getattr(where, name), method) for where in (ours, stats)]
    x = np.array([*POINTS, np.nan])
    x = x if name not in ("geninvgauss", "studentized_range") else x[~(x > 0.1) | (x > 0.4)]
    wanted = expected(x, *SHAPES[name], 0.1, 1.5)
    with np.errstate(all="ignore"):
        found = function(cytape.constant(x), *SHAPES[name], 0.1, 1.5)
    np.testing.assert_allclose(found, wanted,
        1e-7 if method == "cdf" or name == "studentized_range" else 1e-11, 1e-12)


@each("name", [name for name in SHAPES if name != "gausshyper"])
def test_probabilities_are_those_of_the_density(name):
    low, high = 0.9, 1.4
    x = low + 0.25 * (1 + np.polynomial.legendre.leggauss(12)[0])
    weights = 0.25 * np.polynomial.legendre.leggauss(12)[1]
    distribution = getattr(ours, name)(*map(cytape.constant, SHAPES[name]))
    between = weights @ distribution.pdf(x)
    for method, sign in (("cdf", 1), ("sf", -1)):
        values = getattr(distribution, method)([low, high])
        np.testing.assert_allclose(sign * (values[1] - values[0]), between, 1e-13)
        np.testing.assert_allclose(
            getattr(distribution, "log" + method)([low, high]), np.log(values), 1e-13)
    np.testing.assert_allclose(distribution.cdf(low) + distribution.sf(low), 1, 1e-14)
    with np.errstate(all="ignore"):
        ends = distribution.cdf([-np.inf, np.inf])
    np.testing.assert_array_equal(ends, [0, 1])


@each("name", [name for name in SHAPES if name not in ("levy_stable", "studentized_range")])
@each("method", ["logpdf", "logcdf", "ppf"])
def test_derivatives_are_differences(name, method):
    function, expected = [getattr(getattr(where, name), method) for where in (ours, stats)]
    args = (0.4, *SHAPES[name], 0.1, 1.5)
    slopes = cytape.grad(function, argnums=tuple(range(len(args))))(*args)
    tolerance = 1e-5 if method == "ppf" else 1e-7
    np.testing.assert_allclose(
        slopes, [differences(expected, args, i) for i in range(len(args))], tolerance)


@each("f, x, expected", [  # derivatives by mpmath
    (lambda df: ours.nct.logpdf(0.5, df, 1.0), 3.0, 0.025184810558272673),
    (lambda df: ours.nct.logcdf(0.0, df, 0.0), 1e-3, 0.0),
    (lambda nc: ours.nct.logpdf(0.5, 3.0, nc), 1.0, -0.44137956072373313),
    (lambda x: ours.nct.logpdf(x, 3.0, 1.0), 0.5, 0.41591465712541575),
    (lambda df: ours.nct.logsf(1e4, df, 1.0), 5.0, -7.78346090016918641),
    (lambda b: ours.norminvgauss.logsf(300.0, 1.5, b), 0.5, 300.641509491332723),
    (lambda a: ours.levy_stable.pdf(0.5, a, 0.4), 1.1, 0.6284394776305933),
    (lambda a: ours.levy_stable.pdf(0.5, a, 0.4), 0.99, -0.060860606296765894),
    (lambda x: ours.levy_stable.logpdf(x, 1.0, 0.0), 0.7, -1.4 / 1.49),
    (lambda b: ours.levy_stable.logpdf(0.3, 0.5, b), 1.0, np.nan),
    (lambda a: ours.levy_stable.cdf(0.3, a, 0.4), 1.0, np.nan),
    (lambda a: ours.levy_stable.cdf(0.3, a, 0.4), 2.0, np.nan),
    (lambda b: ours.levy_stable.sf(0.3, 1.0, b), 0.0, 0.131576535224236081),
    (lambda x: ours.levy_stable.logpdf(x, 1.0, 1e-4), 60.0, -0.0333241515485363389),
    (lambda x: ours.levy_stable.logsf(x, 0.5, 1.0), 1e200, -0.5e-200),
    (lambda x: ours.levy_stable.pdf(x, 1.5, 0.0), 0.0, 0.0),
    (lambda df: ours.studentized_range.logsf(3.0, 3.0, df), 10.0, -0.0350529852009),
    (lambda q: ours.studentized_range.logsf(q, 3.0, 10.0), 100.0, -0.09981220427293858),
    (lambda x: ours.genhyperbolic.cdf(x, 6.678516814839656, 0.07697358809628387,
                                      0.025748030214346934), -0.007, 0.004034529262046262),
    (lambda x: ours.genhyperbolic.cdf(x, 7.85487221449832, 0.015029606007315895,
                                      0.0010728899705063563), 0.7645874894056981,
     0.0015288195118046781),
    (lambda p: ours.geninvgauss.logcdf(1e-3, p, 1.3), 0.7, -7.317940593096250)])
def test_derivatives_and_tails(f, x, expected):
    np.testing.assert_allclose(cytape.grad(f)(x), expected, 1e-10, 1e-15)
    np.testing.assert_allclose(cytape.jvp(f, (x,), (1.0,))[1], expected, 1e-10, 1e-15)


@each("call, ways", [
    (lambda x: ours.nct(x[1], x[2], scale=1.2).cdf(x[0]), ["function", "vmap", "graph"]),
    (lambda x: ours.genhyperbolic.cdf(x[0], 0.3, x[2], x[0]), ["branch", "unknown extents"]),
    (lambda x: ours.norminvgauss.logsf(x[0], x[1], x[0]), ["loop", "vmap"]),
    (lambda x: ours.levy_stable.logsf(x[2], x[1], 0.3 * x[0]), ["function"]),
    (lambda x: ours.ncx2.logcdf(x[2], x[0], x[1]), ["graph", "vmap"]),
    (lambda x: ours.nchypergeom_wallenius.pmf(3, 20, 7, 12, x[0]), ["function"])])
def test_all_ways(call, ways):
    check(call, call, np.array([0.7, 1.3, 2.1]), ways=ways)


@each("alpha", [1.0001, 1.01, 0.999, 1.0, 1.3])
@each("x, beta", [(0.1, 0.5), (-3.0, 0.3), (-5e3, 0.5), (-1.0, -0.9)])
def test_slopes_of_stable_probabilities_are_the_density(alpha, x, beta):
    slope = cytape.grad(ours.levy_stable.sf)(x, alpha, beta)
    density = ours.levy_stable.pdf(cytape.constant(x), alpha, beta)
    np.testing.assert_allclose(-slope, density, 1e-8)


def test_light_tails_of_stable_distributions():
    alphas = np.array([1.3, 1.30013, 1.3003, 1.30045])
    values = np.diff(ours.levy_stable.logpdf(cytape.constant(-10.0), alphas, 1.0))
    np.testing.assert_allclose(values[0] / 1.3, values[1] / 1.7, 0.01)


@each("shapes", [(1.5, 0.5), (0.7, -0.3), (1.0, 0.5), (1.0, 0.0), (2.0, 0.0), (0.6, 1.0)])
def test_stable_distributions(shapes):
    x = np.array([-3.0, -0.2, 0.0, 1.3, 4.0])
    for method in ("pdf", "cdf"):
        found = getattr(ours.levy_stable, method)(cytape.constant(x), *shapes, 0.1, 1.5)
        wanted = getattr(stats.levy_stable, method)(x, *shapes, 0.1, 1.5)
        np.testing.assert_allclose(found, wanted, 1e-9, 1e-15)
    with np.errstate(all="ignore"):
        f = lambda x: ours.levy_stable.logpdf(x, *shapes)  # noqa: E731
        at, h = cytape.constant([0.0, 0.4]), 1e-4
        slopes = cytape.jvp(f, (at,), (np.ones(2),))[1]
        wanted = (f(at + h) - f(at - h)) / (2 * h)
        np.testing.assert_allclose(slopes[shapes[1] == 1:], wanted[shapes[1] == 1:], 1e-6, 1e-7)


def test_stable_distributions_take_one_parameterization():
    levy_stable = type(ours.levy_stable)(stats.levy_stable, lambda *z: 0.0)
    levy_stable.parameterization = "S0"
    with pytest.raises(ValueError, match="S1"):
        levy_stable.pdf(cytape.constant(1.0), 1.5, 0.5)


def test_single_precision_broadcast_and_empty_operands():
    x = cytape.constant(np.linspace(-1, 2, 6, dtype=np.float32).reshape(2, 3)[:, ::2])
    found = ours.nct.cdf(x, np.float32(3.5), 0.7)
    assert found.dtype == np.float32 and found.shape == (2, 2)
    np.testing.assert_allclose(found, stats.nct.cdf(x.numpy(), 3.5, 0.7), 1e-5)
    found = ours.norminvgauss.cdf(cytape.constant(np.zeros((0, 3))), 1.5, 0.5)
    assert found.shape == (0, 3)


def test_a_fit_by_maximum_likelihood():
    optimize = pytest.importorskip("cytape.scipy.optimize")
    x = stats.nct(6.0, 1.5, scale=2.0).rvs(size=80, random_state=0)

    def loss(parameters):
        df, scale = np.exp(parameters[:2])
        return -np.sum(ours.nct.logpdf(x, df, parameters[2], scale=scale))

    found = optimize.minimize(loss, np.array([1.5, 0.5, 1.0]), method="BFGS")
    assert found.success and np.max(np.abs(cytape.grad(loss)(found.x))) < 1e-4
