"""Samples: vectors, shuffles, bytes and integers, and arguments that do not fit."""

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from cytape.errors import SymbolicTensorError
from cytape.testing import check_grads
from tests.cases import each


def test_shapes_that_do_not_fit():
    vector, matrix = np.ones(2), np.eye(2)
    for mean, cov in [(vector, np.eye(3)), (matrix, matrix), (vector, vector)]:
        with pytest.raises(ValueError, match="mean must be a vector"):
            cnp.random.multivariate_normal(cytape.constant(mean), cov)


def test_draws_have_the_covariance_that_was_given():
    cnp.random.seed(1)
    cov = np.array([[2.0, 0.5], [0.5, 1.0]])
    for given in (cytape.constant(cov), cov):
        drawn = cnp.random.multivariate_normal(cytape.constant([1.0, -1.0]), given, 20_000)
        np.testing.assert_allclose(np.cov(drawn.numpy().T), cov, atol=0.08)
        np.testing.assert_allclose(np.mean(drawn.numpy(), 0), [1.0, -1.0], atol=0.08)


@each("name", ["pareto", "power", "weibull"])
def test_parameters_out_of_range_are_numpys_error(name):
    with pytest.raises(ValueError, match="a < 0|a <= 0"):
        getattr(cnp.random, name)(-1.0)
    with pytest.raises(ValueError, match="a < 0|a <= 0"):
        getattr(cnp.random, name)(-1.0, seed=3)


@each("place", [lambda f: f, cytape.function], ids=["eager", "function"])
def test_a_covariance_that_is_none_is_numpys_error(place):
    draw = place(lambda: cnp.random.multivariate_normal(
        [0.0, 0.0], [[1.0, 2.0], [2.0, 1.0]], check_valid="raise"))
    with pytest.raises(ValueError, match="not symmetric positive-semidefinite"):
        draw()


def test_triangular_draws_are_differentiable():
    bounds = [np.array(-1.0), np.array([0.25, 0.5]), np.array(2.0)]
    check_grads(lambda *bounds: cnp.random.triangular(*bounds, (9, 2), seed=2), bounds, order=2)
    left, right = (cytape.grad(lambda mode: cnp.sum(cnp.random.triangular(  # a mode at an end
        0.0, mode, 1.0, 9, seed=2)))(mode) for mode in (0.0, 1.0))
    assert np.isfinite([left, right]).all()
    with pytest.raises(ValueError, match="left > mode"):
        cytape.function(lambda: cnp.random.triangular(1.0, 0.5, 2.0))()


# -- in place --------------------------------------------------------------------------------------

each_array = each("array", [np.arange(8.0), np.arange(12).reshape(4, 3), np.zeros((0, 2))])


def shuffled(array):
    """Return an array as NumPy shuffles it, after the seed 3, which is set again."""
    cnp.random.seed(3)
    array = array.copy()
    np.random.shuffle(array)
    cnp.random.seed(3)
    return array


@each_array
def test_a_tensor_is_shuffled_as_numpy_shuffles_an_array(array):
    expected = shuffled(array)
    for x in (array.copy(), cytape.constant(array), cytape.Variable(array)):
        cnp.random.seed(3)
        assert cnp.random.shuffle(x) is None
        np.testing.assert_array_equal(np.asarray(x), expected)
    x = array.copy()
    cnp.random.shuffle(x, seed=4)
    y = cytape.constant(array)
    cnp.random.shuffle(y, seed=4)
    np.testing.assert_array_equal(x, y)
    items = [1, 2, 3]
    cnp.random.shuffle(items)
    assert sorted(items) == [1, 2, 3]


@each_array
def test_views_see_what_is_shuffled_and_are_shuffled(array):
    x = cytape.constant(array)
    view, expected = x[1:], shuffled(array)
    cnp.random.shuffle(x)
    np.testing.assert_array_equal(view, expected[1:])
    x, expected = cytape.constant(array), array.copy()
    expected[1:] = shuffled(array[1:])
    cnp.random.shuffle(x[1:])
    np.testing.assert_array_equal(x, expected)


@each_array
def test_a_trace_shuffles_anew_in_each_call(array):
    def f(x):
        x = x * 1
        cnp.random.shuffle(x)
        return x

    expected = shuffled(array)
    spec = cytape.Spec.of((None, *array.shape[1:]), array.dtype)
    unknown = cytape.function(f, input_signature=[spec])
    for traced in (cytape.function(f), unknown):
        cnp.random.seed(3)
        np.testing.assert_array_equal(traced(array), expected)
        assert not len(array) or not np.array_equal(traced(array), expected)
    v = cytape.Variable(array)
    traced = cytape.function(lambda: cnp.random.shuffle(v))
    traced()
    v.assign(array)
    cnp.random.seed(3)
    traced()
    np.testing.assert_array_equal(v, expected)


@each("place", [lambda f: f, cytape.function], ids=["eager", "function"])
def test_gradients_follow_what_is_shuffled(place):
    def f(x):
        y = x**3
        cnp.random.shuffle(y)
        return cnp.sum(y * weights)

    x, weights = np.array([1.0, 2.0, -3.0, 0.5]), np.arange(4.0)
    positions = shuffled(np.arange(4))
    back = weights[np.argsort(positions)]
    np.testing.assert_allclose(cytape.grad(place(f))(x), 3 * x**2 * back)
    cnp.random.seed(3)
    np.testing.assert_allclose(cytape.jvp(place(f), (x,), (x,))[1], np.sum(3 * x**3 * back))
    cnp.random.seed(3)
    np.testing.assert_allclose(
        cytape.grad(lambda x: cnp.sum(cytape.grad(place(f))(x)))(x), 6 * x * back)


def test_arguments_that_cannot_be_shuffled_or_drawn():
    with pytest.raises(TypeError, match="len"):
        cnp.random.shuffle(cytape.constant(1.0))
    for x in ([1, 2], np.ones(2)):
        with pytest.raises(SymbolicTensorError, match=r"shuffle of a (list|ndarray) .*permutation"):
            cytape.function(lambda x=x: cnp.random.shuffle(x))()
    with cytape.Graph().as_default(), pytest.raises(SymbolicTensorError, match="bytes .*integers"):
        cnp.random.bytes(3)
    cnp.random.seed(3)
    drawn = cnp.random.bytes(5)
    np.random.seed(3)
    assert drawn == np.random.bytes(5)


def test_integers_up_to_the_last():
    with pytest.warns(DeprecationWarning, match=r"call randint\(1, 2 \+ 1\)"):
        drawn = cytape.function(lambda: cnp.random.random_integers(2, size=99))()
    assert set(drawn) == {1, 2}
