"""Convolution and correlation: what the op table does not state."""

import numpy as np
import pytest

import cytape
from tests.cases import each
from tests.ops.refusals import refuses


@each("call", [
    lambda x: np.convolve(x, np.ones((2, 2))), lambda x: np.convolve(x[:0], x),
    lambda x: np.convolve(x, x, "half"), lambda x: np.correlate(x, x[:0]),
])
def test_what_numpy_does_not_take_is_its_error(call):
    refuses(call, np.ones(3))


@each("mode", [0, 1, 2])
def test_modes_may_be_numbers(mode):
    x, v = np.array([1.0, 2.0, 4.0, 7.0]), np.array([1.0, -1.0])
    np.testing.assert_array_equal(np.convolve(cytape.constant(x), v, mode), np.convolve(x, v, mode))


def test_lengths_that_a_run_tells():
    f = cytape.function(
        cytape.grad(lambda x, v: np.sum(np.convolve(x, v) ** 2), argnums=(0, 1)),
        input_signature=[cytape.Spec.of((None,), float)] * 2)
    x, v = np.array([1.0, 2.0, 4.0]), np.array([1.0, -1.0])
    y = np.convolve(x, v)
    found = f(x, v)
    np.testing.assert_allclose(found[0], 2 * np.correlate(y, v, "valid"))
    np.testing.assert_allclose(found[1], 2 * np.correlate(y, x, "valid"))
    with pytest.raises(cytape.errors.SymbolicTensorError, match="lengths of both"):
        cytape.function(lambda x: np.correlate(x, v, "same"),
                        input_signature=[cytape.Spec.of((None,), float)])(x)
