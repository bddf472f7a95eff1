"""Median, order and Wiener filters of signals: values, gradients, errors."""

import numpy as np
import pytest

import cytape
from cytape.testing import check_grads
from tests.cases import each

scipy_signal = pytest.importorskip("scipy.signal")
signal = pytest.importorskip("cytape.scipy.signal")

X = np.random.default_rng(0).permutation(42).reshape(6, 7) / 10 + 0.05


@each("function", [
    lambda m, x: m.medfilt(x), lambda m, x: m.medfilt(x, (3, 5)), lambda m, x: m.medfilt2d(x, 5),
    lambda m, x: m.order_filter(x, [[0, 1, 0], [1, 1, 1], [0, 1, 0]], 1),
    lambda m, x: m.wiener(x), lambda m, x: m.wiener(x, (3, 5), 0.3)])
def test_values_and_gradients(function):
    np.testing.assert_allclose(function(signal, cytape.constant(X)), function(scipy_signal, X))
    move = np.random.default_rng(1).normal(size=X.shape)  # a small step: kinks are near
    expected = (function(scipy_signal, X + 1e-6 * move) - function(scipy_signal, X - 1e-6 * move))
    found = cytape.jvp(lambda x: function(signal, x), (X,), (move,))[1]
    np.testing.assert_allclose(found, expected / 2e-6, 1e-6, 1e-7)
    slope = cytape.grad(lambda x: np.sum(move * function(signal, x)))(X)
    np.testing.assert_allclose(np.sum(slope * move), np.sum(move * found), 1e-10)


def test_noise_has_a_gradient():
    check_grads(lambda noise: signal.wiener(X, 3, noise), [np.array(0.7)])


def test_errors():
    for call in (lambda m, x: m.medfilt(x, 2), lambda m, x: m.order_filter(x, np.ones((2, 2)), 1),
                 lambda m, x: m.medfilt2d(x[0])):
        with pytest.raises(ValueError):
            call(scipy_signal, X)
        with pytest.raises(ValueError):
            call(signal, cytape.constant(X))
