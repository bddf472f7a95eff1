"""Initial weights: variances, orthogonality, dtypes, seeds."""

import numpy as np
import pytest

from cytape import nn
from tests.cases import each


@each("draw, variance", [
    (nn.glorot_uniform, 2 / (9 * 40 + 9 * 60)), (nn.he_normal, 2 / 360),
    (nn.lecun_normal, 1 / 360)])
def test_variances(draw, variance):
    weights = draw((3, 3, 40, 60), seed=0)
    assert abs(weights.mean()) < 1e-3
    np.testing.assert_allclose(weights.var(), variance, rtol=0.03)
    assert draw((2, 3), dtype=np.float32).dtype == np.float32
    np.testing.assert_array_equal(draw((2, 3), 1), draw((2, 3), np.random.default_rng(1)))
    with pytest.raises(ValueError, match="two axes"):
        draw((3,))


@each("shape", [(4, 4), (6, 3), (3, 6), (2, 2, 2)])
def test_orthogonal_weights(shape):
    weights = nn.orthogonal(shape, seed=0, gain=2.0).reshape(-1, shape[-1])
    product = weights.T @ weights if len(weights) >= shape[-1] else weights @ weights.T
    np.testing.assert_allclose(product, 4 * np.eye(len(product)), atol=1e-12)
