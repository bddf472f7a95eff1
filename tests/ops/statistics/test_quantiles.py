"""Quantiles: between elements and at them, of equal elements, and NaN."""

import warnings

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from cytape.errors import SymbolicTensorError
from tests.cases import each

X = np.array([3.0, 1.0, 7.0, 2.0])


def test_in_q_the_derivative_is_that_to_the_right():
    slope = cytape.grad(lambda q: np.quantile(X, q))
    np.testing.assert_allclose([slope(0.0), slope(1 / 6), slope(0.5)], [3, 3, 3])
    assert slope(1.0) == 0.0
    np.testing.assert_allclose(slope(0.9), 12.0)


def test_of_equal_elements_any_have_the_gradient():
    gradient = cytape.grad(np.median)(np.array([2.0, 2.0, 2.0, 1.0]))
    assert sorted(gradient) == [0, 0, 0.5, 0.5]


@each("function, parts", [
    (lambda x: np.quantile(x, 0.3), {2999: 0.6, 3000: 0.4}), (np.median, {4999: 1}),
    (lambda x: np.quantile(x, 1), {9998: 1}),
    (lambda x: np.nanquantile(np.insert(x, [5, 70], np.nan), 0.3), {2999: 0.6, 3000: 0.4})])
def test_among_many_elements_the_neighbours_have_the_gradient(function, parts):
    x = np.random.default_rng(0).permutation(9_999).astype(float)
    expected = np.zeros(x.size)
    expected[list(parts)] = list(parts.values())
    np.testing.assert_allclose(cytape.grad(function)(x)[x.argsort()], expected, atol=1e-9)


def test_of_many_elements_in_lines_and_of_equal_ones():
    x = np.random.default_rng(0).permutation(9_999).astype(float)
    lines = np.stack([x, x[::-1]])
    found = cytape.grad(lambda x: np.sum(np.quantile(x, 0.3, axis=1)))(lines)
    one = cytape.grad(lambda x: np.quantile(x, 0.3))(x)
    np.testing.assert_array_equal(found, np.stack([one, one[::-1]]))
    tied = cytape.grad(lambda x: np.quantile(x, 0.3))(np.where(x == 2999, 3000, x))
    np.testing.assert_allclose(sorted(tied[(x == 2999) | (x == 3000)]), [0.4, 0.6])


@each("function", [np.median, lambda x: np.quantile(x, 0.3)])
def test_nan_has_no_gradient(function):
    np.testing.assert_array_equal(cytape.grad(function)(np.array([1.0, np.nan, 2.0])), np.zeros(3))


@each("method", ["linear", "hazen", "weibull", "median_unbiased", "interpolated_inverted_cdf"])
@each("x", [X, X[:1], np.array([5.0, np.nan, 1.0, np.nan, 4.0]), np.arange(12.0).reshape(3, 4)])
@each("q", [0.0, 0.01, 0.25, 0.5, 0.77, 1.0])
def test_a_number_is_as_an_array_of_it(q, x, method):
    function = np.nanquantile if np.isnan(x).any() else np.quantile
    found, expected = (cytape.grad(lambda x, q=q: np.sum(
        function(x, q, axis=-1, method=method)))(x) for q in (q, np.array(q)))
    np.testing.assert_allclose(found, expected, atol=1e-15)
    _, found = cytape.jvp(lambda x: function(x, q, axis=-1, method=method), (x,), (x * x,))
    np.testing.assert_allclose(np.sum(found), np.sum(np.nan_to_num(expected * x * x)), 1e-13)


def test_slices_of_nothing_but_nan():
    x = np.array([[np.nan, np.nan], [1.0, 3.0]])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        gradient = cytape.grad(lambda x: np.sum(np.nanmedian(x, axis=1)[1:]))(x)
    np.testing.assert_array_equal(gradient, [[0, 0], [0.5, 0.5]])


@each("q", [0.25, np.float32(0.25), np.array(0.25), [0.25, 0.5], 0, 1, np.array(1), [0, 1]])
@each("dtype", ["float16", "float32", "float64", "int64", "uint8"])
def test_dtypes_are_numpys(dtype, q):
    x = X.astype(dtype)
    for function, scale in ((np.quantile, 1), (np.percentile, 100), (np.nanquantile, 1)):
        scaled = [scale * part for part in q] if type(q) is list else scale * q
        expected = function(x, scaled)
        for called in (function, cytape.function(lambda x, q, f=function: f(x, q))):
            found = np.asarray(called(cytape.constant(x), scaled))
            assert found.dtype == expected.dtype
            np.testing.assert_array_equal(found, expected)


def test_quantiles_of_nothing_have_the_axes_of_q():
    found = np.nanquantile(cytape.constant(np.zeros((0, 3))), [0.2, 0.5], axis=1)
    assert found.shape == (2, 0)  # NumPy's is (0,)


def test_gradients_in_q_and_in_the_elements_mix():
    mixed = cytape.grad(lambda q: cytape.grad(lambda x: np.quantile(x, q))(X)[0])
    assert mixed(0.6) == 3.0


@each("axis, shape", [((2, 0, 1), (4, 2, 3)), ((1, 2, 0), (3, 4, 2)), ((2, 0), (4, 2)), (1, (3,))])
def test_weights_follow_the_axes_in_their_order(axis, shape):
    x = np.random.default_rng(0).normal(size=(2, 3, 4))
    weights = np.random.default_rng(1).uniform(0.1, 1, shape)

    def quantile(x):
        return np.quantile(x, [0.2, 0.4], axis, weights=weights, method="inverted_cdf")

    np.testing.assert_array_equal(quantile(cytape.constant(x)), quantile(x))


@each(traced=[False, True], name=["quantile", "nanquantile"])
def test_a_number_is_a_quantile_in_double_precision_as_for_numpy(name, traced):
    x = (np.arange(70_000) % 2000).astype(np.float16)  # too many to be counted in that

    def f(x):
        return getattr(np, name)(x, 0.3)

    y = (cytape.function(f) if traced else f)(cytape.constant(x))
    assert y.dtype == x.dtype
    assert y == f(x) == np.percentile(cytape.constant(x), 30)
    slope = cytape.grad(lambda s: f(s * x))(np.float16(1.0))
    np.testing.assert_allclose(slope, 599.5, rtol=1e-3)


@each(shape=[(0,), (0, 3), (3, 0)], axis=[None, 0, -1], function=[
    cnp.median, cnp.nanmedian, lambda x, axis: cnp.nanquantile(x, 0.3, axis),
    lambda x, axis: cnp.nanquantile(x, cytape.constant([0.3, 0.6]), axis),
    lambda x, axis: cnp.nanquantile(x, 0.3, axis, method="lower")])
@pytest.mark.filterwarnings("ignore:Mean of empty slice", "ignore:invalid value")
def test_nothing_has_gradients_without_elements(function, axis, shape):
    def loss(x):
        return cnp.sum(function(x, axis=axis))

    x = np.zeros(shape)
    for grad in (cytape.grad(loss), cytape.function(cytape.grad(loss))):
        assert np.shape(grad(x)) == shape
    assert np.shape(cytape.jvp(loss, (x,), (x,))[1]) == ()


@each(shape=[(0,), (0, 3), (3, 0)], method=["lower", "nearest", "inverted_cdf", "linear"])
@each("dtype", ["int32", "bool", "float32"])
@pytest.mark.filterwarnings("ignore:Mean of empty slice", "ignore:invalid value")
def test_traced_quantiles_of_nothing_have_numpys_dtype(dtype, method, shape):
    x = np.zeros(shape, dtype)
    expected = np.nanquantile(x, np.array([0.5]), axis=0, method=method)
    found = cytape.function(lambda x: cnp.nanquantile(x, np.array([0.5]), axis=0, method=method))(x)
    assert found.dtype == expected.dtype


def test_gradients_with_respect_to_q_of_lines_without_elements():
    gradient = cytape.grad(lambda q: cnp.sum(cnp.nanquantile(np.zeros((3, 0)), q, axis=0)))
    np.testing.assert_array_equal(gradient(np.array([0.2, 0.4])), [0, 0])


WEIGHTS = np.array([1.0, 2.0, 0.5, 1.0])


@each("quantile", [
    lambda x, q: np.quantile(x, q, axis=1), lambda x, q: np.nanquantile(x, q, axis=0),
    lambda x, q: np.quantile(x, q, axis=1, method="lower"),
    lambda x, q: np.quantile(x, q, axis=1, weights=WEIGHTS, method="inverted_cdf")])
@each("shape, shape_of_q", [((None, None), (None, None)), ((3, None), (2, 2)), ((3, 4), (None, 2))])
def test_extents_need_not_be_known_for_quantiles_of_several_axes(quantile, shape, shape_of_q):
    def derivatives(x, q):
        gradients = cytape.grad(
            lambda x, q: cnp.sum(cnp.sin(quantile(x, q))) + cnp.sum(q * q), (0, 1))(x, q)
        return quantile(x, q), *gradients, cytape.jvp(quantile, (x, q), (x * x, q * q))[1]

    x = np.random.default_rng(0).normal(size=(3, 4))
    q = np.array([[0.33, 0.77], [0.13, 0.22]])
    traced = cytape.function(derivatives, input_signature=[
        cytape.Spec.of(shape, float), cytape.Spec.of(shape_of_q, float)])
    for found, eager in zip(traced(x, q), derivatives(x, q), strict=True):
        np.testing.assert_allclose(found, eager, 1e-13)


@each("weights", [None, WEIGHTS])
def test_how_many_axes_quantiles_have_must_be_known(weights):
    quantile = cytape.function(
        lambda q: cnp.quantile(X, q, weights=weights, method="inverted_cdf"),
        input_signature=[cytape.Spec.of(None, float)])
    with pytest.raises(SymbolicTensorError, match="how many axes"):
        quantile(0.5)


@each(name=["quantile", "nanquantile"], q=[[0.2, 0.9], [[0.2, 0.9]], []])
def test_weighted_quantiles_of_nan_are_numpys_and_have_no_gradient(name, q):
    def quantile(x):
        return getattr(np, name)(x, q, weights=WEIGHTS, method="inverted_cdf")

    x = np.array([1.0, np.nan, 2.0, 0.5])
    for f in (quantile, cytape.function(quantile)):
        np.testing.assert_array_equal(f(cytape.constant(x)), quantile(x), strict=True)
    gradient = cytape.grad(lambda x: np.sum(quantile(x)))
    n_numbers = np.isfinite(quantile(x)).sum()
    assert gradient(x)[1] == 0 and gradient(x).sum() == n_numbers


def test_weighted_quantiles_of_no_lines_have_the_axes_of_q():
    found = cnp.nanquantile(cytape.constant(np.zeros((0, 4))), [0.2, 0.5, 0.7], 1,
                            weights=WEIGHTS, method="inverted_cdf")
    assert found.shape == (3, 0)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # NumPy's, of a mean of nothing
@each(dtype=[np.float32, np.int64], q=[0.2, [0.2, 0.5]])
def test_weighted_quantiles_of_lines_without_elements_are_nan(dtype, q):
    def quantile(x):
        return np.nanquantile(x, q, 1, weights=np.ones((2, 0)), method="inverted_cdf")

    x = np.zeros((2, 0), dtype)
    expected = np.full((*np.shape(q), 2), np.nan, quantile(x).dtype)
    for f in (quantile, cytape.function(quantile)):
        np.testing.assert_array_equal(f(cytape.constant(x)).numpy(), expected, strict=True)
    if dtype == np.float32:
        assert cytape.grad(lambda x: np.sum(quantile(x)))(x).shape == x.shape


@each("name", ["quantile", "nanquantile"])
def test_quantiles_over_several_axes_of_no_lines(name):
    x = np.zeros((2, 0, 3))
    for f in (cytape.grad, lambda f: cytape.function(
            cytape.grad(f), input_signature=[cytape.Spec.of((None, None, None), float)])):
        gradient = f(lambda x: np.sum(getattr(np, name)(x, 0.3, (0, 2))))
        assert gradient(x).shape == x.shape


@each(name=["quantile", "nanquantile"], shape=[(3,), (2, 3)])
@pytest.mark.filterwarnings("ignore:All-NaN slice")
def test_quantiles_that_are_nan_keep_their_dtype(name, shape):
    quantile = cytape.function(lambda x, q: getattr(np, name)(x, q, -1))
    found = quantile(np.full(shape, np.nan, np.float32), np.asarray(0.5))
    assert found.dtype == float and np.isnan(found).all()
