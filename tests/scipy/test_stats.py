"""Distributions: SciPy's values, derivatives in all parameters, tails, invalid parameters."""

import re

import numpy as np
import pytest

import cytape
from cytape.testing import check_grads
from tests.cases import each, sampled
from tests.ways import check

stats = pytest.importorskip("scipy.stats")
ours = pytest.importorskip("cytape.scipy.stats")

POINTS = np.array([-30.0, -1.0, 0.0, 0.3, 0.9, 2.0, 7.0, 60.0, np.nan])
CONTINUOUS = {"norm": (), "t": (2.5,), "gamma": (1.7,), "chi2": (3.0,), "beta": (1.5, 2.5)}
PROBABILITIES = ["cdf", "sf", "logcdf", "logsf"]
CALLS = [(d, m, shapes) for d, shapes in CONTINUOUS.items()
         for m in ["pdf", "logpdf", *PROBABILITIES]]
CALLS += [("poisson", m, (2.3,)) for m in ["pmf", "logpmf", *PROBABILITIES]]


def parameters(distribution, shapes):
    return (*shapes, 0.0) if distribution == "poisson" else (*shapes, 0.1, 1.5)


@each("distribution, method, shapes", CALLS)
@each("call", [lambda f: f, cytape.function])
def test_values_are_scipys(distribution, method, shapes, call):
    given = parameters(distribution, shapes)
    function, expected = [
        getattr(getattr(where, distribution), method) for where in (ours, stats)]
    with np.errstate(all="ignore"):
        found = call(lambda x, *given: function(x, *given))(
            cytape.constant(POINTS), *map(cytape.constant, given))
        np.testing.assert_allclose(np.asarray(found), expected(POINTS, *given), 1e-12, 1e-15)
    np.testing.assert_array_equal(function(POINTS[1:], *given), expected(POINTS[1:], *given))


@each(x=[0.3, 1, np.array(0.4), np.array([0.1, np.inf, -np.inf, np.nan, -50.0]), [1.0, 2.0],
         np.array([1.0, 2.0], np.float32), np.ma.masked_array([1.0, 2.0], [False, True])])
@each(scale=[1.5, 0.0, -1.0, np.inf, np.array([[0.5], [0.0]])])
@each(method=["pdf", "logpdf", *PROBABILITIES])
def test_plain_numbers_get_what_scipy_returns(x, scale, method):
    with np.errstate(all="ignore"):
        found, expected = [
            getattr(where.norm, method)(x, 0.2, scale) for where in (ours, stats)]
    assert type(found) is type(expected)
    np.testing.assert_array_equal(found, expected, strict=True)


def test_covariances_of_nearly_lower_rank_are_scipys_to_judge():
    x, mean = np.array([0.1, 0.1]), np.zeros(2)
    for small, is_regular in ((1e-7, True), (1e-9, True), (1e-11, False)):
        covariance = np.array([[1.0, 0.0], [0.0, small]])
        density = cytape.value_and_grad(ours.multivariate_normal.logpdf)
        if is_regular:
            value, gradient = density(x, mean, covariance)
            np.testing.assert_allclose(value, stats.multivariate_normal.logpdf(x, mean, covariance))
            np.testing.assert_allclose(gradient, [-0.1, -0.1 / small])
        else:
            with pytest.raises(np.linalg.LinAlgError, match="positive definite"):
                density(x, mean, covariance)


@sampled(2, call=CALLS)
def test_derivatives_in_both_modes_and_orders_with_broadcasting(call):
    distribution, method, shapes = call
    function = getattr(getattr(ours, distribution), method)
    if distribution == "poisson":
        k = np.array([[0.0], [3.0]])
        check_grads(lambda mu: function(k, mu), [np.array([0.5, 2.3, 4.0])])
        return
    x = np.array([[0.4], [0.7], [0.9]])
    rest = [np.array([0.05, 0.1]), np.array([[1.5]])]
    rest = [np.array(shape) for shape in shapes] + rest
    check_grads(function, [x, *rest])


def slopes(f, x):
    """Return the first two derivatives of a function of a number."""
    slope = cytape.grad(f)
    tangents = cytape.jvp(f, (x,), (1.0,))[1], cytape.jvp(slope, (x,), (1.0,))[1]
    np.testing.assert_allclose(tangents, [slope(x), cytape.grad(slope)(x)])
    return tangents


@each("f, x, expected", [
    (ours.norm.logsf, 30.0, [-30.033259667433677, -0.9988962284881911]),
    (ours.norm.logcdf, -30.0, [30.033259667433677, -0.9988962284881911]),
    (ours.norm.logcdf, -1e8, [1e8, -1.0]),
    (ours.norm.logcdf, 40.0, [0.0, 0.0]), (ours.norm.logsf, -40.0, [0.0, 0.0])])
def test_tails_of_the_normal_distribution(f, x, expected):
    np.testing.assert_allclose(slopes(f, x), expected)


@each("method", PROBABILITIES)
@each("x, a, b", [(1e-20, 0.01, 3.0), (1e-17, 0.1, 0.5)])
def test_the_beta_distribution_at_small_numbers(method, x, a, b):
    function, expected = [getattr(where.beta, method) for where in (ours, stats)]
    np.testing.assert_allclose(function(cytape.constant(x), a, b), expected(x, a, b), 1e-13)
    p = stats.beta.sf(x, a, b) if method.endswith("sf") else stats.beta.cdf(x, a, b)
    slope = stats.beta.pdf(x, a, b) / (p if method.startswith("log") else 1)
    slope = -slope if method.endswith("sf") else slope
    second = (a - 1) / x * slope - (slope**2 if method.startswith("log") else 0)  # of x**(a - 1)
    np.testing.assert_allclose(
        slopes(lambda x: function(x, a, b), x), [slope, second], 1e-12)


@each("f, x, expected", [
    (lambda x: ours.beta.pdf(x, 2.0, 3.0), 0.0, [12.0, -48.0]),
    (lambda x: ours.beta.cdf(x, 2.0, 3.0), 0.0, [0.0, 12.0]),
    (lambda x: ours.beta.cdf(x, 2.0, 3.0), 1.0, [0.0, 0.0]),
    (lambda x: ours.gamma.pdf(x, 2.0), 0.0, [1.0, -2.0]),
    (lambda x: ours.gamma.cdf(x, 2.0), 0.0, [0.0, 1.0]),
    (lambda x: ours.chi2.pdf(x, 4.0), 0.0, [0.25, -0.25]),
    (lambda mu: ours.poisson.pmf(1, mu), 0.0, [1.0, -2.0])])
def test_derivatives_at_the_ends_of_supports(f, x, expected):
    np.testing.assert_allclose(slopes(f, x), expected)


@each("method", ["pdf", "logpdf", *PROBABILITIES])
def test_t_of_infinite_degrees_of_freedom_is_normal(method):
    function, normal = getattr(ours.t, method), getattr(ours.norm, method)
    for x in (-3.0, 0.5):
        given = cytape.constant(x)
        np.testing.assert_allclose(function(given, np.inf), normal(given), 1e-13)
        np.testing.assert_allclose(
            slopes(lambda x: function(x, np.inf), x), slopes(normal, x), 1e-12)


@each("distribution, method, shapes", CALLS)
def test_invalid_parameters_give_nan_as_in_scipy(distribution, method, shapes):
    for i in range(len(parameters(distribution, shapes))):
        given = [*parameters(distribution, shapes)]
        if i == len(shapes):
            continue  # any location is valid
        given[i] = np.array([-1.0, 2.0])
        function, expected = [
            getattr(getattr(where, distribution), method) for where in (ours, stats)]
        with np.errstate(all="ignore"):
            found = function(*map(cytape.constant, (0.5, *given)))
            np.testing.assert_allclose(found, expected(0.5, *given), 1e-12)


@each("f", [
    lambda x, wrong: ours.norm.logpdf(x, 0.1, wrong),
    lambda x, wrong: ours.t.cdf(x, 2.5, 0.1, wrong),
    lambda x, wrong: ours.gamma.logpdf(x, wrong), lambda x, wrong: ours.beta.pdf(x, 2.5, wrong),
    lambda x, wrong: ours.chi2.logsf(x, 3.0, 0.1, wrong),
    lambda x, wrong: x * ours.poisson.logcdf(1, wrong)])
@each("call", [lambda f: f, cytape.function])
def test_gradients_in_and_beside_invalid_parameters_are_nan(f, call):
    x, wrong = np.array([0.3, 0.3]), np.array([-1.0, 2.0])
    slope = call(cytape.grad(lambda *given: np.sum(f(*given)), argnums=(0, 1)))
    tangents = [
        cytape.jvp(lambda x: f(x, wrong), (x,), (np.ones(2),))[1],
        cytape.jvp(lambda wrong: f(x, wrong), (wrong,), (np.ones(2),))[1]]
    for found in (slope(x, wrong), tangents):
        np.testing.assert_array_equal(np.isnan(found), [[True, False]] * 2)


@each("x", [0.0, 1.0])
def test_beta_densities_in_single_precision_are_zero_at_the_ends(x):
    x, shape = np.float32(x), np.float32(66)
    for method in ours.beta.pdf, ours.beta.cdf, ours.beta.sf:
        value, gradient = cytape.value_and_grad(lambda x, f=method: f(x, shape, shape))(x)
        assert value.dtype == np.float32 and np.isfinite(value) and gradient == 0


@each("df", [3.0, np.float32(3)])
def test_t_far_from_its_centre_has_finite_gradients(df):
    x = type(df)(np.finfo(type(df)).max / 10)
    with np.errstate(over="ignore"):
        assert abs(cytape.grad(lambda x: ours.t.logpdf(x, df))(x)) < 1e-6
        assert cytape.grad(lambda x: ours.t.pdf(x, df))(x) == 0


def test_keywords_and_other_methods_are_scipys():
    x = cytape.constant(0.5)
    assert ours.norm.pdf(x, scale=2.0) == pytest.approx(stats.norm.pdf(0.5, scale=2.0))
    assert ours.gamma.logpdf(x, loc=-1.0, a=2.0) == pytest.approx(
        stats.gamma.logpdf(0.5, 2.0, loc=-1.0))
    with pytest.raises(TypeError, match="unexpected keyword"):
        ours.norm.pdf(x, sigma=2.0)
    assert ours.norm.ppf(0.5) == 0.0 and ours.norm(1.0, 2.0).mean() == 1.0
    assert ours.rv_histogram is stats.rv_histogram and {"norm", "rv_histogram"} <= set(dir(ours))


def regular(rng, n=3):
    root = rng.normal(size=(n, n))
    return root @ root.T + np.eye(n)


@each("x_shape", [(3,), (5, 3), (2, 5, 3)])
def test_multivariate_normal(x_shape):
    rng = np.random.default_rng(0)
    given = x, mean, cov = rng.normal(size=x_shape), rng.normal(size=3), regular(rng)
    for name in ("logpdf", "pdf"):
        f = getattr(ours.multivariate_normal, name)
        expected = getattr(stats.multivariate_normal, name)(*given)
        np.testing.assert_allclose(f(*map(cytape.constant, given)), expected, 1e-12)
        np.testing.assert_array_equal(f(*given), expected)
        check_grads(lambda x, mean, root: f(x, mean, root @ root.T), [  # noqa: B023
            x, mean, np.linalg.cholesky(cov)])
        traced = cytape.function(lambda *given: f(*given))  # noqa: B023
        np.testing.assert_allclose(traced(*given), expected, 1e-12)


def test_normal_of_known_covariance():
    mvn, x, mean = ours.multivariate_normal, np.array([[0.3, 2.0], [1.0, -1.0]]), np.array([0.1, 1])
    cov = np.array([[2.0, 0.0], [0.0, 1.0]])
    for function in (mvn(mean, cov).logpdf,
                     lambda x: mvn.logpdf(x, mean, stats.Covariance.from_diagonal([2.0, 1.0]))):
        check(lambda x, f=function: np.sum(f(x)),
              lambda x: np.sum(mvn.logpdf(x, mean, cytape.constant(cov))), x)


def test_multivariate_normal_of_numbers_and_defaults():
    mvn, x = ours.multivariate_normal, np.array([0.3, 2.0])
    for args in ((), (0.5,), (0.5, 2.0), (np.ones(2), 2.0), (np.ones(2), np.array([1.0, 2.0]))):
        expected = stats.multivariate_normal.logpdf(x, *args)
        np.testing.assert_allclose(mvn.logpdf(cytape.constant(x), *args), expected, 1e-12)
    cov = np.diag([1.0, 2.0])
    np.testing.assert_allclose(
        mvn.entropy(None, cytape.constant(cov)), stats.multivariate_normal.entropy(None, cov))
    np.testing.assert_allclose(
        cytape.grad(lambda cov: mvn.entropy(None, cov))(cov), 0.5 * np.linalg.inv(cov))
    assert mvn(np.ones(2)).dim == 2 and mvn.rvs is not None


def test_a_singular_covariance():
    mvn, cov = ours.multivariate_normal, np.diag([2.0, 1.0, 0.0])
    inside, outside = np.array([1.0, 2.0, 0.0]), np.array([1.0, 2.0, 3.0])
    with pytest.raises(np.linalg.LinAlgError, match="singular"):
        mvn.logpdf(cytape.constant(inside), None, cov)
    for x in (inside, outside):
        np.testing.assert_allclose(
            mvn.logpdf(cytape.constant(x), None, cov, True),
            stats.multivariate_normal.logpdf(x, None, cov, True))
    slopes = cytape.grad(mvn.logpdf, argnums=(0, 2))(inside, None, cov, True)
    np.testing.assert_allclose(slopes[0], [-0.5, -2.0, 0.0], atol=1e-12)
    pinv = np.diag([0.5, 1.0, 0.0])
    np.testing.assert_allclose(
        slopes[1], 0.5 * np.outer(pinv @ inside, pinv @ inside) - 0.5 * pinv, atol=1e-12)
    with pytest.raises(ValueError, match="semidefinite"):
        mvn.logpdf(cytape.constant(inside), None, -np.eye(3))


def test_dirichlet():
    x, alpha = np.array([[0.2, 0.5], [0.3, 0.1], [0.5, 0.4]]), np.array([1.5, 2.0, 3.0])
    for name in ("logpdf", "pdf"):
        f, expected = getattr(ours.dirichlet, name), getattr(stats.dirichlet, name)
        for points in (x, x[:, 0], x[:2], x[:2, 0]):
            np.testing.assert_allclose(
                f(cytape.constant(points), alpha), expected(points, alpha), 1e-12)
            np.testing.assert_allclose(f(points, alpha), expected(points, alpha))
        check_grads(lambda x, alpha: f(x / np.sum(x, 0), alpha), [x, alpha])  # noqa: B023
        check_grads(lambda x: f(x, alpha), [x[:2]])  # noqa: B023
    with pytest.raises(ValueError, match="simplex"):
        ours.dirichlet.logpdf(cytape.constant(2 * x[:, 0] - 0.2), alpha)
    unknown = cytape.function(
        lambda alpha: ours.dirichlet.logpdf(x, alpha),
        input_signature=[cytape.Spec.of((None,), float)])
    with pytest.raises(ValueError, match="known number of components"):
        unknown(alpha)
    assert ours.dirichlet(alpha).mean().shape == (3,) and ours.dirichlet.var is not None


@each("call, advice", [
    (lambda x: ours.norm.fit(x), "cytape.scipy.optimize.minimize"),
    (lambda x: ours.norm.interval(0.9, x), "ppf"), (ours.norm.median, "d.ppf(0.5)"),
    (lambda x: ours.norm(x, 1.0).expect(lambda t: t), "cytape.scipy.integrate.quad")])
def test_functions_without_a_derivative_say_what_to_write(call, advice):
    with pytest.raises(TypeError, match=re.escape(advice)):
        cytape.grad(call)(np.array([0.3, 1.2, 2.0]))


@each("call", [
    lambda x: ours.norm.logcdf(x, 0.1, 1.5), lambda x: ours.t.logpdf(x, 2.5),
    lambda x: ours.gamma.logpdf(x, 2.5), lambda x: ours.multivariate_normal.logpdf(x[None])])
def test_vmap_of_gradients(call):
    x = np.array([0.3, 1.2, 2.0])
    one_by_one = [cytape.grad(lambda a: np.sum(call(a)))(a) for a in x]
    np.testing.assert_allclose(
        cytape.vmap(cytape.grad(lambda a: np.sum(call(a))))(x), one_by_one, 1e-12)
