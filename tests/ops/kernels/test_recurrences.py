"""The gradients of cumulative products, without a division, of cumulative sums and products."""

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from cytape.ops.kernels.recurrences import cumprod_gradient, cumsum_gradient, prod_gradient
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


@each("dtype", ["float32", "float64", "longdouble", "complex64", "complex128", "clongdouble"])
@each("shape", [(1,), (7,), (3, 5), (2, 1), (1, 2), (2, 3, 4), (0,), (3, 0), (0, 3)])
def test_sums_are_added_up_from_the_last(shape, dtype):
    g = np.random.default_rng(0).normal(size=shape).astype(dtype)
    for x in g, g[::-1], np.asfortranarray(g), np.broadcast_to(g.dtype.type(3), shape):
        expected = np.flip(np.cumsum(np.flip(x, -1), -1), -1)
        np.testing.assert_array_equal(cumsum_gradient(x), expected, strict=True)


@pytest.mark.parametrize("g", [np.ones(()), np.ones(3, int), np.ones(3, "f2"), np.ones(3, ">f8")])
def test_sums_of_other_dtypes_are_refused(g):
    with pytest.raises(TypeError, match="expected a gradient with an axis at least"):
        cumsum_gradient(g)


@each("known", [False, True])
@each("axis", [None, 0, 1, -1, (0, 1), (1, 2), (0, 2)])
@each("dtype", ["float32", "float64", "longdouble", "complex128"])
def test_products_are_divided_by_their_factors(dtype, axis, known):
    rng = np.random.default_rng(0)
    x = rng.uniform(0.5, 2, (3, 4, 9)).astype(dtype)
    product = np.prod(x, axis)
    g = np.asarray(rng.normal(size=product.shape), dtype)
    found = prod_gradient(g, x, product if known else None, axis)
    if dtype in ("longdouble", "complex128") or axis == (0, 2):
        assert found is None  # is left to NumPy
        return
    whole = np.reshape(g * product, np.sum(x, axis, keepdims=True).shape)
    np.testing.assert_allclose(found, whole / x, 1e-5 if dtype == "float32" else 1e-13)


@each("known", [False, True])
@each("place, factor", [(0, 0.0), (5, -0.0), (3, np.nan), (8, np.inf), (7, 1e-310), (2, 1e300),
                        (2, 1e-300)])
@each("columns", [1, 2])
def test_products_are_not_divided_by_numbers_that_are_not_normal(place, factor, known, columns):
    x = np.full((9, columns), 1.5)
    x[place, -1] = factor
    x[place - 1, -1] = 1e200 if factor == 1e300 else 1e-200 if factor == 1e-300 else 1e10
    with np.errstate(all="ignore"):
        product = np.prod(x, 0) if known else None
        assert prod_gradient(np.ones(columns), x, product, 0) is None


def test_products_without_a_gradient_are_not_divided():
    assert prod_gradient(np.zeros(()), np.ones(3), None, None) is None


def test_products_that_vanish_on_the_way_are_left_to_others():
    # Of sixteen chains one is subnormal, and another makes up for it.
    x = np.ones(32)
    x[[0, 1, 16, 17]] = 1.1e-160, 1e150, 1.3e-160, 1e150
    assert prod_gradient(np.ones(1), x, None, 0) is None
    found = cytape.function(cytape.grad(np.prod))(x)
    np.testing.assert_allclose(found[[0, 2]], [1.3e140, 1.43e-20], 1e-14)
