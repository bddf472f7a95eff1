"""The peak memory of a gradient, measured from outside."""

import numpy as np

from bench.peak_memory import cytape_gradient, peak_ratio


def test_the_gradient_is_that_of_the_network():
    weights, batch = [np.array([[0.5]]), np.array([[2.0]])], np.array([[1.0]])
    _, gradients = cytape_gradient(weights, batch)
    h = np.tanh(0.5)
    y = np.tanh(2 * h)
    outer = 2 * y * (1 - y**2)
    np.testing.assert_allclose([g.item() for g in gradients],
                               [outer * 2 * (1 - h**2), outer * h])


def test_activations_go_as_the_backward_pass_goes_by():
    assert peak_ratio("cytape", 50, 256, 256) < 1
