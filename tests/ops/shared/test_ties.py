"""Extrema that several elements share, in dtypes and along axes that C does not know."""

import numpy as np

import cytape
from tests.cases import each


@each("dtype", ["float16", "float32", "float64", "longdouble", "complex64", "complex128"])
@each("axis", [None, 0, -1, (0, 2)])
def test_gradients_of_every_dtype(axis, dtype):
    x = np.arange(24).reshape(2, 3, 4).astype(dtype) // 3 if dtype[0] != "c" else (
        np.arange(24).reshape(2, 3, 4) // 3).astype(dtype)
    found = cytape.grad(lambda x: np.sum(np.max(x, axis)).real)(x)
    chosen = x == x.max(axis, keepdims=True)
    assert found.dtype == dtype
    np.testing.assert_allclose(found, chosen / chosen.sum(axis, keepdims=True), 1e-3)


def test_derivatives_of_shares_in_the_gradient():
    x, v = np.array([1.0, 2.0, 2.0]), np.array([5.0, 3.0, 1.0])
    second = cytape.grad(lambda w: np.sum(cytape.grad(lambda x: np.max(x) * w)(x) * v))
    assert second(cytape.constant(7.0)) == 2
