"""Hessians, and products with Hessians and Gauss-Newton matrices, in forward over reverse mode."""

import numpy as np
import pytest

import cytape
from cytape.errors import UnconnectedGradientWarning
from cytape.testing import numerical_jvp
from tests.autodiff.test_forward_functional import (
    assert_same,
    cube,
    mixture,
    reverse_hessian,
    reverse_jacobian,
    wave,
)
from tests.cases import each

# -- hessian, hessian_vector_product ---------------------------------------------------------------


def rosenbrock(x):
    return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


@each(("f", "shape"), [
    (mixture, (4,)), (rosenbrock, (5,)), (lambda x: np.linalg.norm(x.T @ x), (3, 2)),
    (lambda x: np.log(np.sum(np.exp(x))), (2, 2)),
    (lambda x: np.sum(np.tanh(x @ x)), (2, 2)),
])
def test_hessians(f, shape):
    rng = np.random.default_rng(5)
    x, vector = rng.normal(size=shape), rng.normal(size=shape)
    hessian = cytape.hessian(f)(x)
    assert type(hessian) is np.ndarray
    assert hessian.shape == shape + shape
    matrix = hessian.reshape(x.size, x.size)
    np.testing.assert_allclose(matrix, matrix.T, atol=1e-10)
    np.testing.assert_allclose(hessian, reverse_hessian(f, x), rtol=1e-9, atol=1e-10)
    product = cytape.hessian_vector_product(f)(x, vector)
    assert type(product) is np.ndarray
    np.testing.assert_allclose(product, np.tensordot(hessian, vector, x.ndim), atol=1e-9)
    np.testing.assert_allclose(
        product, numerical_jvp(cytape.grad(f), (x,), (vector,)), rtol=1e-6, atol=1e-6)


def test_the_hessian_of_a_quadratic_form():
    a = np.arange(9.0).reshape(3, 3)
    np.testing.assert_allclose(cytape.hessian(lambda x: x @ a @ x)(np.ones(3)), a + a.T)
    assert cytape.hessian(lambda x: x**3)(2.0) == 12.0
    assert type(cytape.hessian(lambda x: x**3)(np.float32(2.0))) is np.float32


def test_hessians_by_structures_and_several_arguments():
    f = lambda p: p["a"] ** 2 * np.sum(p["b"] ** 3)  # noqa: E731
    p = {"a": 2.0, "b": np.array([1.0, 3.0])}
    a_a, a_b, b_b = 2 * 28.0, 2 * 2.0 * 3 * p["b"] ** 2, np.diag(4 * 6 * p["b"])
    assert_same(cytape.hessian(f)(p), {"a": {"a": a_a, "b": a_b}, "b": {"a": a_b, "b": b_b}})
    vector = {"a": 10.0, "b": np.array([1.0, 2.0])}
    expected = {"a": a_a * 10 + a_b @ vector["b"], "b": a_b * 10 + b_b @ vector["b"]}
    assert_same(cytape.hessian_vector_product(f)(p, vector), expected)
    hessian = cytape.hessian(lambda x, y: x**2 * y, (0, 1))(2.0, 3.0)
    assert hessian == ((6.0, 4.0), (4.0, 0.0))
    assert cytape.hessian(lambda x, y: x**2 * y**2, -1)(2.0, 3.0) == 8.0


def test_hessian_vector_products_by_another_argument():
    f = lambda x, y, *, power: np.sum(x * y**power)  # noqa: E731
    x, y, vector = np.array([2.0, 3.0]), np.array([5.0, 7.0]), np.array([1.0, 10.0])
    for argnum in (1, -1, np.int64(1)):
        product = cytape.hessian_vector_product(f, argnum)(x, y, vector, power=3)
        np.testing.assert_allclose(product, x * 6 * y * vector)
    product = cytape.hessian_vector_product(f, -2)(x, y, vector, power=3)
    assert product.tolist() == [0.0, 0.0]


def test_hessian_vector_products_are_differentiable():
    x, vector = np.array([2.0, 3.0]), np.array([1.0, 10.0])
    product = cytape.hessian_vector_product(lambda x: np.sum(x**4))
    third = cytape.jacfwd(lambda x: product(x, vector))(x)
    np.testing.assert_allclose(third, np.diag(24 * x * vector))
    gradient = cytape.grad(lambda x: np.sum(product(x, vector)))(x)
    np.testing.assert_allclose(gradient, 24 * x * vector)


@each(("args", "error", "message"), [
    ((), TypeError, "expected the arguments of cube and after them the vector"),
    ((np.ones(2),), TypeError, "expected the arguments of cube and after them the vector"),
    ((np.ones(2), np.ones(3)), ValueError, r"shape \(3,\), the primal \(2,\)"),
    ((np.ones(2), {"a": 1.0}), ValueError, "structures differ"),
    ((2, 1), TypeError, "argument 0 of cube has dtype int64"),
])
def test_arguments_that_hessian_vector_products_refuse(args, error, message):
    with pytest.raises(error, match=message):
        cytape.hessian_vector_product(cube)(*args)


@each("transform", [cytape.hessian_diagonal, cytape.hessian_vector_product])
def test_products_with_hessians_are_those_of_scalars(transform):
    with pytest.raises(TypeError, match=r"wave must return a scalar, got shape \(2,\)"):
        transform(wave)(*(np.ones(2),) * (1 if transform is cytape.hessian_diagonal else 2))


@each("make", [
    lambda argnum: cytape.hessian_vector_product(cube, argnum),
    lambda argnum: cytape.make_ggnvp(cube, f_argnum=argnum),
])
def test_products_are_by_one_argument(make):
    with pytest.raises(TypeError, match=r"argnum must be one integer, got \(0, 1\)"):
        make((0, 1))
    with pytest.raises(TypeError, match="got 'x'"):
        make("x")


# -- make_ggnvp ------------------------------------------------------------------------------------


def model(weights, x):
    return np.tanh(x @ weights) * np.sum(weights)


def loss(y):
    """Convex, with a full Hessian that depends on where it is."""
    return np.log(np.sum(np.exp(y))) + np.sum(y**2)


@each(g=[None, loss], use_batch=[False, True])
def test_gauss_newton_products_are_those_of_the_dense_matrix(g, use_batch):
    rng = np.random.default_rng(6)
    weights, x = rng.normal(size=(3, 2)), rng.normal(size=(4, 3))
    options = {} if g is None else {"g": g}
    jacobian = reverse_jacobian(lambda weights: model(weights, x), weights).reshape(8, 6)
    if g is None:
        matrix = jacobian.T @ jacobian
    else:
        of_g = reverse_hessian(g, model(weights, x)).reshape(8, 8)
        matrix = jacobian.T @ of_g @ jacobian
    product = cytape.make_ggnvp(model, use_batch=use_batch, **options)(weights, x)
    for n_directions in (0, 1, 3) if use_batch else (None,):
        batch = rng.normal(size=weights.shape if n_directions is None else (n_directions, 3, 2))
        result = product(batch)
        assert type(result) is np.ndarray
        assert result.shape == batch.shape
        expected = (batch.reshape(-1, 6) @ matrix).reshape(batch.shape)
        np.testing.assert_allclose(result, expected, rtol=1e-9)


@each("argnum", [1, -1])
def test_gauss_newton_products_by_another_argument(argnum):
    weights, x = np.arange(6.0).reshape(3, 2) / 10, np.array([0.1, 0.2, 0.3])
    direction = np.array([1.0, 2.0, 3.0])
    jacobian = reverse_jacobian(lambda x: model(weights, x), x)
    product = cytape.make_ggnvp(model, f_argnum=argnum)(weights, x)
    np.testing.assert_allclose(product(direction), jacobian.T @ jacobian @ direction)
    np.testing.assert_allclose(product(0 * direction), np.zeros(3))


@each("use_batch", [False, True])
def test_gauss_newton_products_of_structures(use_batch):
    f = lambda p, factor: {"product": p["a"] * p["b"] * factor, "a": p["a"]}  # noqa: E731
    g = lambda y: np.sum(y["product"] ** 2) * 3 + y["a"] ** 2  # noqa: E731
    p = {"a": 2.0, "b": np.array([3.0, 4.0])}
    rng = np.random.default_rng(7)
    lead = (2,) if use_batch else ()
    batch = {"a": rng.normal(size=lead), "b": rng.normal(size=(*lead, 2))}
    result = cytape.make_ggnvp(f, g, use_batch=use_batch)(p, factor=2.0)(batch)
    pushed = 2 * (batch["a"][..., None] * p["b"] + p["a"] * batch["b"])
    expected = {
        "a": 6 * 2 * np.sum(pushed * p["b"], axis=-1) + 2 * batch["a"],
        "b": 6 * 2 * p["a"] * pushed,
    }
    assert_same(result, expected)


def test_gauss_newton_products_with_no_directions_keep_structure_and_dtype():
    p = {"a": np.float32(2.0), "b": np.ones((2, 3), np.float32)}
    batch = {"a": np.zeros(0, int), "b": np.zeros((0, 2, 3))}
    result = cytape.make_ggnvp(lambda p: p["a"] * p["b"], use_batch=True)(p)(batch)
    assert (result["a"].shape, result["b"].shape) == ((0,), (0, 2, 3))
    assert result["a"].dtype == result["b"].dtype == np.float32


def test_a_constant_model_has_no_curvature():
    product = cytape.make_ggnvp(lambda x: np.ones(3))(np.ones(2))
    with pytest.warns(UnconnectedGradientWarning):
        assert product(np.ones(2)).tolist() == [0.0, 0.0]


def test_arguments_that_gauss_newton_products_refuse():
    with pytest.raises(TypeError, match="only functions can be transformed, got float"):
        cytape.make_ggnvp(cube, g=3.0)
    with pytest.raises(ValueError, match="argnums 5 must be different positions among the 2"):
        cytape.make_ggnvp(model, f_argnum=5)(1.0, 2.0)
    with pytest.raises(ValueError, match="argnums -3 must be"):
        cytape.make_ggnvp(model, f_argnum=-3)(1.0, 2.0)
    with pytest.raises(TypeError, match="argument 0 of cube has dtype int64"):
        cytape.make_ggnvp(cube)(2)
    product = cytape.make_ggnvp(np.sin)(np.ones(2))
    with pytest.raises(ValueError, match=r"shape \(3,\), the primal \(2,\)"):
        product(np.ones(3))
    with pytest.raises(ValueError, match="structures differ"):
        product([1.0, 1.0])
    with pytest.raises(TypeError, match="wave must return a scalar"):
        cytape.make_ggnvp(np.sin, wave)(np.ones(2))(np.ones(2))
