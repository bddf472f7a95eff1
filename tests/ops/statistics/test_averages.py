"""Averages and covariances: weights, errors, and what is equal."""

import numpy as np
import pytest

import cytape
from tests.cases import each

X = np.array([[1.0, 2.0, 4.0], [0.0, 5.0, 3.0]])


def test_too_few_observations_warn():
    with pytest.warns(RuntimeWarning, match="Degrees of freedom"):
        np.cov(cytape.constant(X), ddof=3)


def test_a_range_has_both_ends():
    gradient = cytape.grad(np.ptp)(np.array([1.0, 3.0, 3.0, 0.0]))
    np.testing.assert_array_equal(gradient, [0, 0.5, 0.5, -1])


@each("call", [np.cov, np.corrcoef, lambda x: np.cov(x, x[:, ::-1]),
               lambda x: np.cov(x, rowvar=False), lambda x: np.corrcoef(x, rowvar=False)])
@each("shape", [(None, 3), (None, None), (2, None)])
def test_of_an_unknown_number_of_variables_it_is_a_matrix(call, shape):
    traced = cytape.function(call, input_signature=[cytape.Spec.of(shape, float)])
    np.testing.assert_allclose(traced(X), call(X), atol=1e-12)


def test_of_one_variable_that_is_known_it_is_a_number():
    line = cytape.function(np.cov, input_signature=[cytape.Spec.of((None,), float)])
    row = cytape.function(np.cov, input_signature=[cytape.Spec.of((1, None), float)])
    np.testing.assert_allclose([line(X[0]), row(X[:1])], [np.cov(X[0])] * 2)


def test_one_observation_of_several_variables_is_no_single_variable():
    row = cytape.constant(X[:1])
    np.testing.assert_array_equal(np.cov(row, rowvar=False, bias=True), np.zeros((3, 3)))
    assert np.cov(cytape.constant(X.T[:, :1]), row, rowvar=False).shape == (2, 2)


def with_unknown_ranks(f, *arrays):
    with cytape.Graph().as_default() as graph:
        places = [cytape.placeholder("float64", None) for _ in arrays]
        result = f(*places)
    return cytape.Session(graph).run(result, dict(zip(places, arrays, strict=True)))


@each("weights", [np.ones(3), np.ones((3, 2)), np.array(2.0), np.ones((1, 2, 3))])
def test_weights_of_an_unknown_number_of_axes_are_checked_in_a_run(weights):
    with pytest.raises(TypeError, match="Axis must be specified"):
        with_unknown_ranks(lambda x, w: np.average(x, weights=w), X, weights)
    with pytest.raises(ValueError, match="weights should have the same shape"):
        with_unknown_ranks(lambda x, w: np.histogram(x, [0, 1, 2], weights=w)[0], X, weights)


def test_weights_of_an_unknown_number_of_axes():
    found = with_unknown_ranks(lambda x, w: np.average(x, weights=w), X, X)
    np.testing.assert_allclose(found, np.average(X, weights=X))
    with pytest.raises(cytape.errors.SymbolicTensorError, match="how many axes"):
        with_unknown_ranks(lambda x, w: np.average(x, 0, weights=w), X, X)


@each(shape=[(2, 3), (3, 3), (1, 3)], turned=[False, True])
def test_weights_of_axes_in_another_order(shape, turned):
    def average(x, w):
        return np.average(x, axis=(1, 0), weights=w)

    x = np.arange(np.prod(shape), dtype=float).reshape(shape)
    w = x**2 + 1
    if turned:
        w = np.ascontiguousarray(w.T)
    f = cytape.function(average, input_signature=[cytape.Spec.of((None, None), float)] * 2)
    np.testing.assert_allclose(f(x, w), average(x, w))
    for argument in (0, 1):
        np.testing.assert_allclose(
            cytape.grad(f, argument)(x, w), cytape.grad(average, argument)(x, w))
        hessian = cytape.hessian(lambda x, w: average(x * x, w * w), argument)
        traced = cytape.function(hessian, input_signature=[cytape.Spec.of((None, None), float)] * 2)
        np.testing.assert_allclose(traced(x, w), hessian(x, w), atol=1e-14)
    with pytest.raises(ValueError, match="must be consistent"):
        f(x, np.ones((4, 5)))


@each("x", [np.arange(6.0).reshape(2, 3), np.ones((2, 3), np.complex64), np.ones((2, 3), "f4")])
def test_counts_that_are_returned_have_the_dtype_of_the_average(x):
    def count(x):
        return np.average(x, axis=1, returned=True)[1]

    for signature in (None, [cytape.Spec.of((None, None), x.dtype)]):
        found = cytape.function(count, input_signature=signature)(x)
        assert found.dtype == count(x).dtype
        np.testing.assert_array_equal(found, count(x))
