"""Cross-correlations of stacks: operands that are not of the dtype of each other, and errors."""

import numpy as np
import pytest

import cytape
from cytape.ops.submodules.stack_correlation import stack_correlation_op


def test_sizes_that_do_not_fit_raise():
    x = cytape.constant(np.ones((1, 2, 3)))
    for y in (np.ones((1, 3, 2)), np.ones((1, 2, 4))):
        with pytest.raises(ValueError):
            stack_correlation_op(x, y, before=(0,), after=(0,))


def test_it_is_the_sum_over_channels_of_correlations():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(1, 2, 6)), rng.normal(size=(1, 2, 3))
    expected = sum(np.correlate(x[0, d], y[0, d]) for d in range(2))
    result = stack_correlation_op(x, y, before=(0,), after=(0,))
    np.testing.assert_allclose(result[0, 0], expected)
