"""Finite responses and sums over lags are transposes of each other."""

import numpy as np
import pytest

from tests.cases import each

scipy_signal = pytest.importorskip("scipy.signal")
products = pytest.importorskip("cytape.ops.signals.filter_products")


@each(shape=[(7,), (2, 7), (7, 3), (0,), (2, 0)], n_lags=[1, 3, 9])
def test_each_is_the_transpose_of_the_other(shape, n_lags):
    rng = np.random.default_rng(0)
    c, x, g = rng.normal(size=n_lags), rng.normal(size=shape), rng.normal(size=shape)
    axis = int(np.argmax(np.array(shape) != 2))
    y = products.fir_op(c, x, axis=axis)
    if x.size:
        np.testing.assert_allclose(y, scipy_signal.lfilter(c, [1.0], x, axis), 1e-12, 1e-12)
    sums = products.lags_op(g, x, axis=axis, n_lags=n_lags)
    np.testing.assert_allclose(np.sum(g * y), sums @ c, 1e-12, 1e-12)
