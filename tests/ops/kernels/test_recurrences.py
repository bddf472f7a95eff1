"""The gradient of a cumulative product: no division, so that zeros are numbers as others."""

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from cytape.ops.kernels.recurrences import cumprod_gradient
from tests.cases import each

INF = np.inf


def by_definition(g, x):
    total = np.zeros_like(x)
    for i in range(x.shape[-1]):
        others = x.copy()
        others[..., i] = 1
        total[..., i] = np.sum((g * np.cumprod(others, -1))[..., i:], -1)
    return total


@each("dtype", ["float32", "float64", "longdouble", "complex64", "complex128",
                "clongdouble"])
@each("shape", [(1,), (7,), (3, 5), (2, 3, 4), (0,), (3, 0), (0, 3)])
def test_every_dtype_and_shape(shape, dtype):
    rng = np.random.default_rng(0)
    g, x = (rng.normal(size=shape).astype(dtype) for _ in range(2))
    if x.dtype.kind == "c":
        x = (x + 1j * rng.normal(size=shape)).astype(dtype)
    x.reshape(-1)[2::4] = 0
    found = cumprod_gradient(g, x)
    assert found.dtype == dtype
    np.testing.assert_allclose(found, by_definition(g, x), rtol=1e-5 if "64" in dtype or (
        dtype == "float32") else 1e-13, atol=1e-6 if dtype in ("float32", "complex64") else 1e-15)


@pytest.mark.parametrize("g, x, expected", [
    ([1, 0, 0], [2, INF, 3], [1, 0, 0]),
    ([0, 1, 0], [2, INF, 3], [INF, 2, 0]),
    ([0, 0, 0], [INF, 0, INF], [0, 0, 0]),
    ([0, 0, 1], [0, 0, 3], [0, 0, 0]),
    ([0, 1, 0], [0, 5, INF], [5, 0, 0]),
])
def test_gradients_of_zero_meet_no_infinite_products(g, x, expected):
    found = cumprod_gradient(np.array(g, float), np.array(x, float))
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("g, x", [
    (np.ones(300, "i1"), np.ones(300, "i1")),
    (np.ones(3), np.ones(3, "f4")),
    (np.ones(3, "f2"), np.ones(3, "f2")),
    (np.ones(2), np.ones(3)),
    (np.ones(3, ">f8"), np.ones(3, ">f8")),
    (np.ones(()), np.ones(())),
], ids=["integers", "dtypes", "half", "shapes", "byte order", "no axis"])
def test_memory_is_read_as_what_it_is(g, x):
    with pytest.raises(TypeError, match="expected a gradient and factors of one shape"):
        cumprod_gradient(g, x)


@pytest.mark.parametrize("compiled", [False, True])
def test_derivatives_to_third_order(compiled):
    def third(x):
        return cytape.elementwise_grad(cytape.elementwise_grad(cytape.elementwise_grad(
            lambda x: cnp.cumprod(cnp.stack([x, x, x * x, 2.0 * x]))[-1])))(x)

    run = cytape.function(third) if compiled else third
    for x in (0.0, 1.5, -2.0):  # of 2 x**5
        np.testing.assert_allclose(np.asarray(run(cytape.constant(x))), 120 * x * x, rtol=1e-13)
