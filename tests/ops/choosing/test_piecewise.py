"""Choices: what conditions and numbers may be, and which functions are called."""

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp

X = np.array([-1.0, 0.5, 2.0])


def test_the_first_condition_that_holds_chooses():
    gradient = cytape.grad(lambda x: np.sum(np.select([x > 0, x > 1], [2 * x, 3 * x], x)))(X)
    np.testing.assert_array_equal(gradient, [1, 2, 2])


def test_only_what_is_taken_is_seen_by_a_function():
    with np.errstate(all="raise"):
        gradient = cytape.grad(
            lambda x: np.sum(np.piecewise(x, [x > 0], [np.sqrt, lambda x: 0 * x])))(X)
    np.testing.assert_allclose(gradient, [0, 0.5 / np.sqrt(0.5), 0.5 / np.sqrt(2)])


def test_a_function_of_nothing_is_not_called():
    def fails(x):
        raise AssertionError

    assert np.piecewise(cytape.constant(X), [X > 5], [fails, 1.0]).tolist() == [1, 1, 1]


def test_pieces_of_an_array_may_depend_on_tensors_from_outside():
    seen = []

    def ramp(a, b):
        def below(x):
            seen.append(x)
            return a * x
        return np.sum(cnp.piecewise(X, [X < 0, X > 1], [below, 3.0, lambda x: b * x**2]) ** 2)

    gradient = cytape.grad(ramp, argnums=(0, 1))
    np.testing.assert_allclose(gradient(2.0, 3.0), [4.0, 2 * 3 * 0.5**4])
    assert [type(x) for x in seen] == [np.ndarray]  # called once, with what NumPy calls it with
    assert type(cnp.piecewise(X, [X < 0], [np.abs, 1.0])) is np.ndarray
    a, b = np.array([2.0, 1.0]), np.array([3.0, 1.0])
    expected = [[4.0, 2.0], [0.375, 0.125]]
    np.testing.assert_allclose(cytape.vmap(gradient)(a, b), expected)
    np.testing.assert_allclose(cytape.function(gradient)(a[0], b[0]), [4.0, 0.375])


def test_pieces_in_a_graph():
    f = cytape.function(
        cytape.grad(lambda x: np.sum(np.piecewise(x, [x < 0, x > 1], [np.sin, np.square, 7.0]))),
        input_signature=[cytape.Spec.of((None,), float)])
    np.testing.assert_allclose(f(X), [np.cos(-1), 0, 4])


def test_numbers_out_of_range_in_a_graph_are_an_error_of_its_run():
    f = cytape.function(lambda a, x: np.choose(a, [x, x]))
    with pytest.raises(ValueError, match="invalid entry in choice array"):
        f(np.array([0, 1, 2]), X)


def test_functions_may_fill_one_buffer():
    def value(a):
        buffer = cnp.zeros(1)

        def scaled(x, factor):
            buffer[0] = factor * x[0]
            return buffer

        return cnp.piecewise(
            np.array([1.0, 2.0]), [np.array([True, False]), np.array([False, True])],
            [lambda x: scaled(x, a), lambda x: scaled(x, 3 * a)])

    np.testing.assert_array_equal(cytape.jacobian(value)(5.0), [1, 6])
