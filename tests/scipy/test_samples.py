"""Functions of one or two samples: SciPy's values, derivatives by differences, errors."""

import pickle

import numpy as np
import pytest

import cytape
from cytape.errors import DetachedError
from cytape.testing import check_grads
from tests.cases import each

stats = pytest.importorskip("scipy.stats")
ours = pytest.importorskip("cytape.scipy.stats")
X = np.array([0.3, 1.2, 2.1, 0.9, 3.4])
Y = np.array([0.5, 1.5, 2.8, -0.7, 2.0])
W = np.array([0.2, 0.9, 0.4, 1.0, 0.3])
PLANE = np.array([[0.3, 1.2, 2.1, 0.9], [1.5, -0.4, 0.6, 0.1]])


def joined(results):
    return np.hstack([np.ravel(x) for x in results])


@each("f, args", [
    (lambda m, x, y: tuple(m.pearsonr(x, y)), (X, Y)),
    (lambda m, x, y: tuple(m.pearsonr(x, y, alternative="less")), (X, Y)),
    (lambda m, x, y: (m.pearsonr(x, y, axis=1).statistic,), (PLANE, PLANE[::-1]**2)),
    (lambda m, x, y: (*m.linregress(x, y), m.linregress(x, y).intercept_stderr), (X, Y)),
    (lambda m, x, y: tuple(m.linregress(x, y, "greater")), (X, Y)),
    (lambda m, data, x: (m.gaussian_kde(data)(x),), (X, Y)),
    (lambda m, data, x, w: (m.gaussian_kde(data, weights=w).logpdf(x),), (X, Y, W)),
    (lambda m, data, x: (m.gaussian_kde(data, "silverman").pdf(x),), (PLANE, PLANE[:, :2] + 0.1)),
    (lambda m, x: (m.gaussian_kde(PLANE, 0.4)(x),), (PLANE[:, 0],)),
    (lambda m, x: (m.boxcox(x, 0.4),), (X,)), (lambda m, x: (m.yeojohnson(x, 0.4),), (Y,)),
    (lambda m, x: (m.boxcox_llf(0.3, x),), (X,)), (lambda m, x: (m.yeojohnson_llf(0.3, x),), (Y,)),
    (lambda m, x, y, w: (m.wasserstein_distance(x, y, w),), (X, Y[:3], W)),
    (lambda m, x, y: (m.energy_distance(x, y),), (X, Y[:3]))])
def test_values_and_derivatives(f, args):
    expected = joined(f(stats, *args))
    np.testing.assert_allclose(joined(f(ours, *map(cytape.constant, args))), expected, 1e-10, 1e-14)
    np.testing.assert_array_equal(joined(f(ours, *args)), expected)

    def total(*args):
        return sum(np.sum(x) * (i + 1.3) for i, x in enumerate(f(ours, *args)))

    check_grads(total, list(args))
    np.testing.assert_allclose(
        cytape.function(total)(*args), total(*map(cytape.constant, args)), 1e-12)


@each("f, expected", [
    (lambda b: ours.gaussian_kde(X, b)(0.7)[0], lambda b: stats.gaussian_kde(X, b)(0.7)[0]),
    (lambda b: ours.boxcox_llf(b, X), lambda b: stats.boxcox_llf(b, X)),
    (lambda b: ours.yeojohnson(Y, b)[3], lambda b: stats.yeojohnson(Y, b)[3])])
def test_derivatives_in_bandwidths_and_powers(f, expected):
    difference = (expected(0.3 + 1e-6) - expected(0.3 - 1e-6)) / 2e-6
    assert cytape.grad(f)(0.3) == pytest.approx(difference, rel=1e-6)


def test_errors():
    x = cytape.constant(X)
    with pytest.raises(ValueError, match="must be 'less', 'greater', or 'two-sided'"):
        ours.pearsonr(x, Y, alternative="more")
    with pytest.raises(ValueError, match="with method=None"):
        ours.pearsonr(x, Y, method=stats.PermutationMethod())
    with pytest.raises(ValueError, match="points have dimension 2, dataset has dimension 1"):
        ours.gaussian_kde(x)(PLANE)
    with pytest.raises(ValueError, match="Number of dimensions is greater"):
        ours.gaussian_kde(cytape.constant(PLANE.T))
    with pytest.raises(ValueError, match="multiple elements"):
        ours.gaussian_kde(x[:1])
    for function in (ours.spearmanr, ours.kendalltau):
        with pytest.raises(DetachedError):
            cytape.grad(lambda x, f=function: f(x, Y).statistic)(X)
    assert ours.pearsonr(x[:2], Y[:2]) == (1.0, 1.0)


def test_distances_in_functions_with_weights_that_are_arrays():
    def f(x):
        return ours.wasserstein_distance(x, Y[:3], np.arange(1.0, len(X) + 1), [1.0, 2.0, 1.0])

    np.testing.assert_allclose(cytape.function(f)(X), f(X))


@each("name, call, match", [
    ("spearmanr", lambda f, x: f(x, x[::-1] ** 2).statistic, "ranks"),
    ("rankdata", lambda f, x: f(x), "ranks"),
    ("permutation_test", lambda f, x: f(
        (x, x + 1), lambda a, b: np.mean(a) - np.mean(b), n_resamples=5, rng=0).statistic,
     "permutation_test has no derivative"),
    ("quantile", lambda f, x: f(x, 0.3), "numpy.quantile has one"),
    ("shapiro", lambda f, x: f(x).pvalue, "shapiro has no derivative")])
def test_functions_without_derivatives(name, call, match):
    function, x = getattr(ours, name), np.array([0.3, 2.0, 1.1, 0.9])
    expected = call(getattr(stats, name), x)
    np.testing.assert_allclose(call(function, x), expected)
    np.testing.assert_allclose(call(function, cytape.constant(x)), expected)
    with pytest.raises(DetachedError, match=match):
        cytape.grad(lambda x: np.sum(call(function, x)))(x)
    assert pickle.loads(pickle.dumps(function)) is function
