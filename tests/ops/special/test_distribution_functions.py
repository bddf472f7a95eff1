"""Distribution functions by other parameters: inverses, counts, noncentral and F distributions."""

import warnings

import numpy as np
import pytest

import cytape
from tests.cases import each

special = pytest.importorskip("scipy.special")


@each("function, position, inverse, arguments", [  # a function of arguments, and its inverse in one
    ("chdtrc", 1, "chdtri", (3.0, 2.0)), ("chdtr", 0, "chdtriv", (3.0, 2.0)),
    ("gdtr", 2, "gdtrix", (1.5, 2.0, 0.8)), ("gdtr", 0, "gdtria", (1.5, 2.0, 0.8)),
    ("gdtr", 1, "gdtrib", (1.5, 2.0, 0.8)), ("fdtr", 2, "fdtri", (3.0, 5.0, 0.7)),
    ("chndtr", 0, "chndtrix", (2.0, 3.0, 1.2))])
def test_derivatives_of_inverses(function, position, inverse, arguments):
    of = {"chdtriv": lambda p, v, x: (p, x), "gdtria": lambda p, a, b, x: (p, b, x),
          "gdtrib": lambda p, a, b, x: (a, p, x), "chndtrix": lambda p, x, df, nc: (p, df, nc)}
    put = of.get(inverse, lambda p, *given: (*given[:position], p))
    function, inverse = getattr(special, function), getattr(special, inverse)

    def identity(*given):
        return inverse(*put(function(*given), *given))

    argnums = [i for i in range(len(arguments)) if function is not special.chndtr or i != 1]
    slopes = cytape.grad(identity, argnums=tuple(argnums))(*arguments)
    np.testing.assert_allclose(slopes, [float(i == position) for i in argnums], atol=1e-7)


def test_counts_take_their_integer_part():
    slopes = [cytape.grad(special.pdtr, argnums=1)(k, 1.5) for k in (2.0, 2.7)]
    assert slopes[0] == slopes[1] == pytest.approx(special.pdtr(1, 1.5) - special.pdtr(2, 1.5))
    slope = cytape.grad(lambda p: special.bdtr(2, np.float64(5), p))(0.3)
    np.testing.assert_allclose(slope, -5 * special.binom(4, 2) * 0.3**2 * 0.7**2)


@each("name, k, n", [
    ("bdtr", 2.0, 5.7), ("bdtrc", 2.3, 5.7), ("bdtri", 2.0, 5.7), ("nbdtr", 2.5, 3.7),
    ("nbdtrc", 2.5, 3.7), ("nbdtri", 2.5, 3.7)])
def test_numbers_of_trials_are_truncated(name, k, n):
    f = getattr(special, name)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        slopes = [cytape.grad(lambda p: f(*kn, p))(0.3) for kn in ((k, n), (int(k), int(n)))]  # noqa: B023
        step = 1e-6
        difference = (f(k, n, 0.3 + step) - f(k, n, 0.3 - step)) / (2 * step)
    assert slopes[0] == slopes[1] == pytest.approx(difference, rel=1e-6)


def test_all_trials_have_a_constant_probability():
    assert cytape.grad(lambda p: special.bdtr(3, 3, p))(0.4) == 0
    with np.errstate(all="ignore"):
        assert np.isnan(cytape.grad(lambda p: special.bdtri(3, 3, p))(0.4))


@each("f, x, end", [  # no parameter gives these probabilities
    (lambda p: special.fdtridfd(3.0, p, 1.2), 0.99, 1e100),
    (lambda p: special.stdtridf(p, 0.17), 0.6, 1e10),
    (lambda p: special.stdtridf(p, 1.2), 0.4, -1e100),
    (lambda p: special.chndtrinc(1.0, 2.0, p), 0.4, 0.0),
    (lambda p: special.ncfdtrinc(2.3, 0.33, p, 0.15), 0.62, 0.0)])
def test_inverses_at_the_ends_of_the_search_have_no_slope(f, x, end):
    with np.errstate(all="ignore"):
        value, slope = cytape.value_and_grad(f)(x)
    assert value == pytest.approx(end, abs=1e-300) and np.isnan(slope)


@each("x", [1e-8, 0.5, 1e4, 1e9])
def test_the_f_distribution_is_precise_in_both_tails(x):
    n, d = 3.0, 5.0
    z = n * x / d
    density = z**(n / 2) * (1 + z)**(-(n + d) / 2) / special.beta(n / 2, d / 2) / x
    np.testing.assert_allclose(cytape.grad(special.fdtr, argnums=2)(n, d, x), density, 1e-12)
    # of the reciprocal, with degrees of freedom exchanged
    np.testing.assert_allclose(
        cytape.grad(special.fdtr, argnums=(0, 1))(n, d, x),
        cytape.grad(special.fdtrc, argnums=(1, 0))(d, n, 1 / x), 1e-12)


def test_noncentral_of_zero_is_chi_squared():
    np.testing.assert_allclose(
        cytape.grad(special.chndtr)(2.0, 3.0, 0.0),
        cytape.grad(special.chdtr, argnums=1)(3.0, 2.0))
    small, slope = 1e-9, cytape.grad(special.chndtr, argnums=2)
    np.testing.assert_allclose(slope(2.0, 3.0, 0.0), slope(2.0, 3.0, small), 1e-6)


@each("name, given", [
    ("nctdtr", (3.0, 0.7, 1.2)), ("nctdtr", (3.0, 0.7, -1.2)), ("nctdtr", (5.0, 1.7, 0.0)),
    ("nctdtrit", (3.0, 0.7, 0.4)), ("nctdtrinc", (3.0, 0.4, 1.2)), ("ncfdtr", (3.0, 5.0, 0.7, 1.2)),
    ("ncfdtri", (3.0, 5.0, 0.7, 0.4)), ("ncfdtrinc", (3.0, 5.0, 0.2, 1.2))])
def test_noncentral_distributions_against_differences(name, given):
    function, step = getattr(special, name), 1e-4
    for i in (-2, -1):
        def along(x):
            point = list(given)
            point[i] = x  # noqa: B023
            return function(*point)

        difference = (along(given[i] + step) - along(given[i] - step)) / (2 * step)
        assert cytape.grad(along)(given[i]) == pytest.approx(difference, rel=2e-4)


@each("f, x", [
    (lambda m: special.pdtrik(0.83, m), 0.17), (lambda p: special.bdtrik(0.45, 5.0, p), 0.02),
    (lambda p: special.nbdtrik(0.3, 2.0, p), 0.9)])
def test_inverses_that_are_cut_at_zero_have_no_slope(f, x):
    assert f(x) == 0
    assert cytape.grad(f)(x) == 0


def test_a_mean_far_from_a_narrow_distribution_has_a_precise_slope():
    p, scale, x = 0.3, 1e-9, 1e6
    slopes = cytape.grad(special.nrdtrimn, argnums=(0, 1, 2))(p, scale, x)
    quantile = special.ndtri(p)
    np.testing.assert_allclose(
        slopes, (-scale * np.sqrt(2 * np.pi) * np.exp(0.5 * quantile**2), -quantile, 1), 1e-14)


@each("k, n, y", [(27.0, 48, 1e-19), (2.0, 9, 1e-30), (5.0, 6, 0.3)])
def test_small_probabilities_of_binomial_counts_have_precise_slopes(k, n, y):
    p = special.betainccinv(k + 1, n - k, y)
    density = p**k * (1 - p)**(n - k - 1) / special.beta(k + 1, n - k)
    assert cytape.grad(lambda y: special.bdtri(k, n, y))(y) == pytest.approx(-1 / density, rel=1e-9)


@each("df, nc, t", [
    (294.7, 1.7, 6.1), (290.0, -3.4, -8.0), (76.0, 2.9, -2.3), (1.1, 4.8, -1.5), (0.3, 2.0, 9.0),
    (1e4, 2.0, 3.0)])
def test_noncentral_t_is_precise_for_many_degrees_and_in_tails(df, nc, t):
    assert_slopes(special.nctdtr, "noncentral_t", (df, nc, t), (1, 2))


@each("n, d, f", [
    (36.0, 450.0, 0.92), (2.0, 1e4, 1.3), (1e4, 3.0, 0.4), (4e3, 7e3, 1.01), (89.0, 1641.0, 0.978)])
def test_the_f_distribution_is_precise_for_many_degrees_of_freedom(n, d, f):
    assert_slopes(special.fdtr, "lower_f", (n, d, f), (0, 1, 2))


def assert_slopes(function, reference, point, argnums):
    pytest.importorskip("mpmath")
    from tests.ops.special import distribution_references
    from tests.ops.special.accuracy import expected

    reference = getattr(distribution_references, reference)
    right = [expected(reference, [[x] for x in point], i, 0).real for i in argnums]
    np.testing.assert_allclose(
        cytape.grad(function, argnums=argnums)(*point), right, 1e-10)
    for i, slope in zip(argnums, right, strict=True):  # one by one, by other ops
        np.testing.assert_allclose(cytape.grad(function, argnums=i)(*point), slope, 1e-10)
