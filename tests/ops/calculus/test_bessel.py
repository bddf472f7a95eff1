"""The Bessel function at the origin and far from it, and the window."""

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp


def test_derivatives_at_the_origin():
    first = cytape.grad(np.i0)
    assert first(0.0) == 0.0
    assert cytape.grad(first)(0.0) == 0.5
    assert cytape.grad(cytape.grad(first))(0.0) == 0.0


def test_the_derivative_is_odd():
    x = np.array([0.3, 7.9, 8.1, 100.0, 700.0])
    slopes = cytape.grad(lambda x: np.sum(np.i0(x)))
    np.testing.assert_array_equal(slopes(-x), -slopes(x))
    # I1 / I0 tends to 1 - 1/(2x)
    np.testing.assert_allclose(slopes(x)[3:] / np.i0(x[3:]), 1 - 0.5 / x[3:], rtol=1e-4)


def test_a_window_of_one_and_of_none():
    beta = cytape.constant(3.0)
    assert cnp.kaiser(1, beta).shape == (1,)
    assert cnp.kaiser(0, beta).shape == (0,)
    np.testing.assert_array_equal(cnp.kaiser(4, 3.0), np.kaiser(4, 3.0))


def test_complex_arguments_are_refused():
    with pytest.raises(TypeError, match="complex"):
        np.i0(cytape.constant(1j))
