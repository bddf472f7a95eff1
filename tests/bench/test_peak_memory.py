"""The peak memory of a gradient, measured from outside."""

import numpy as np
import pytest

from bench.peak_memory import cytape_gradient, peak_of_graph_gradient, peak_ratio
from tests.resident import needs_rollup


def test_the_gradient_is_that_of_the_network():
    weights, batch = [np.array([[0.5]]), np.array([[2.0]])], np.array([[1.0]])
    _, gradients = cytape_gradient(weights, batch)
    h = np.tanh(0.5)
    y = np.tanh(2 * h)
    outer = 2 * y * (1 - y**2)
    np.testing.assert_allclose([g.item() for g in gradients], [outer * 2 * (1 - h**2), outer * h])


def test_activations_go_as_the_backward_pass_goes_by():
    assert peak_ratio("cytape", 50, 256, 256) < 1


MEBIBYTE = 1 << 20


@needs_rollup
@pytest.mark.parametrize(("network", "arguments", "beside"), [
    ("mlp", (64, 16, 8192), 0),
    pytest.param("residual_network", (64, 16, 4, 64), 4.5,  # for the patches of a convolution
                 marks=pytest.mark.exhaustive)])
def test_checkpoints_save_as_many_pages_as_bytes(network, arguments, beside):
    pages = {}
    for checkpoints in (None, "memory", "auto"):
        pages[checkpoints], counted = peak_of_graph_gradient(network, checkpoints, *arguments)
        assert abs(pages[checkpoints] - counted - beside * MEBIBYTE) <= (
            2 * MEBIBYTE + 0.05 * counted)
    assert pages[None] >= 64 * MEBIBYTE
    assert pages["memory"] <= 0.35 * pages[None]
    assert pages["auto"] <= 0.35 * pages[None]
