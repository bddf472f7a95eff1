"""Functions applied along axes: what they are called with, and what they may return."""

import numpy as np

import cytape
import cytape.numpy as cnp

X = np.arange(6.0).reshape(2, 3)


def test_further_arguments_are_handed_on():
    power = lambda row, p, shift=0.0: np.sum(row**p) + shift  # noqa: E731
    found = np.apply_along_axis(power, 1, cytape.constant(X), 2, shift=1.0)
    np.testing.assert_array_equal(found, np.apply_along_axis(power, 1, X, 2, shift=1.0))


def test_results_may_be_constants():
    found = np.apply_along_axis(lambda row: np.ones(2), 0, cytape.constant(X))
    np.testing.assert_array_equal(found, np.ones((2, 3)))


def test_lines_of_an_array_may_meet_tensors_from_outside():
    squares = lambda a: np.sum(cnp.apply_along_axis(lambda row: row * a, 0, X) ** 2)  # noqa: E731
    np.testing.assert_allclose(cytape.grad(squares)(3.0), 6 * np.sum(X**2))
    np.testing.assert_allclose(cytape.function(squares)(np.array(3.0)), 9 * np.sum(X**2))
    found = cnp.apply_along_axis(np.sort, 0, [[3, 1], [2, 5]])
    assert (type(found), found.tolist()) == (np.ndarray, [[2, 1], [3, 5]])


def test_a_function_may_fill_one_buffer():
    def results(x, zeros, module):
        buffer = zeros(2)

        def filled(row):
            buffer[0], buffer[1] = row.sum(), row.prod()
            return buffer

        return module.apply_along_axis(filled, 1, x)

    expected = results(X, np.zeros, np)
    np.testing.assert_array_equal(results(cytape.constant(X), cnp.zeros, cnp), expected)
    np.testing.assert_array_equal(results(X, np.zeros, cnp), expected)
    gradient = cytape.grad(lambda x: np.sum(results(x, cnp.zeros, cnp)))(X)
    np.testing.assert_array_equal(gradient, [[3, 1, 1], [21, 16, 13]])
