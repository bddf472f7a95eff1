"""Derivatives that are made of quotients; the kernels have tests of their own."""

import numpy as np

import cytape
import cytape.numpy as cnp
from tests.cases import each


def test_the_square_has_an_exact_derivative():
    x = np.random.default_rng(2).normal(size=1000)
    np.testing.assert_array_equal(cytape.grad(lambda x: cnp.sum(cnp.power(x, 2.0)))(x), 2 * x)


@each("dtype", ["float16", "float32", "float64", "longdouble", "complex128"])
def test_dtypes_that_have_no_kernels(dtype):
    x, y = np.array([0.5, 1.0, 2.0], dtype), np.array([2.0, 3.0, 0.5], dtype)
    found, _ = cytape.grad(lambda x, y: cnp.real(cnp.sum(x**y)), argnums=(0, 1))(x, y)
    assert found.dtype == x.dtype
    np.testing.assert_allclose(found, y * x ** (y - 1), rtol=4 * np.finfo(dtype).eps)
