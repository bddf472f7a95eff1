"""Derivatives of sine and cosine, by vectors where there are many elements."""

import numpy as np

import cytape
import cytape.numpy as cnp
from cytape.ops.kernels.fused_function import FusedFunction
from cytape.tensor.tensor import tensor_of
from tests.cases import each
from tests.ways import gradient

SIZES = [1, 2, 31, 63, 64, 65, 66, 71, 128, 511, 512, 513, 575, 576, 577, 1000, 1025, 8192, 9001]
DERIVATIVES = {"sin": (cnp.sin, np.cos), "cos": (cnp.cos, lambda x: -np.sin(x))}
ARGUMENTS = {
    "small": lambda rng, n: rng.uniform(-1, 1, n),
    "tiny": lambda rng, n: rng.uniform(-1, 1, n) * 1e-300,
    "some": lambda rng, n: rng.uniform(-100, 100, n),
    "many turns": lambda rng, n: rng.uniform(-1e6, 1e6, n),
    "huge": lambda rng, n: rng.choice([-1, 1], n) * 10.0 ** rng.uniform(6, 308, n),
    "of all sizes": lambda rng, n: rng.choice([-1, 1], n) * 10.0 ** rng.uniform(-320, 308, n),
    "near the zeros": lambda rng, n: np.pi / 2 * rng.integers(-1000, 1000, n),
    "subnormal": lambda rng, n: np.resize([5e-324, -5e-324, 1e-310, 0.0, -0.0], n)}


@each(arguments=ARGUMENTS, name=DERIVATIVES)
def test_the_error_is_at_most_5_units_in_the_last_place(name, arguments):
    function, derivative = DERIVATIVES[name]
    for size in SIZES:
        x = ARGUMENTS[arguments](np.random.default_rng(size), size)
        found, expected = gradient(function, x), derivative(x)
        assert (np.abs(found - expected) <= 5 * np.spacing(np.abs(expected))).all()


@each(size=[64, 65, 513, 9001], name=DERIVATIVES)
def test_infinity_and_nan_give_nan_where_they_stand(name, size):
    function, derivative = DERIVATIVES[name]
    x = np.random.default_rng(0).uniform(-3, 3, size)
    x[[0, size // 2, size - 1]] = np.inf, -np.inf, np.nan
    with np.errstate(invalid="ignore"):
        found, expected = gradient(function, x), derivative(x)
    np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))
    np.testing.assert_allclose(found, expected, 1e-15)


@each(size=[64, 65, 513], name=DERIVATIVES)
def test_no_warning_is_left_behind_for_others(name, size):
    x = np.full(size, np.inf)
    with np.errstate(invalid="ignore"):
        gradient(DERIVATIVES[name][0], x)
    with np.errstate(all="raise"):
        assert float(cytape.constant(1.0) + 1.0) == 2.0
        np.sum(cytape.constant(np.ones(10)))


@each("name", DERIVATIVES)
@each("lay_out", [
    lambda x: x[::2], lambda x: x[::-1], lambda x: x.reshape(30, -1).T,
    lambda x: np.broadcast_to(x[:1], x.shape), lambda x: np.broadcast_to(x[:, None], (600, 90)),
    lambda x: np.frombuffer(b"\0" + x.tobytes(), np.uint8)[1:].view(float),
], ids=["every other", "backwards", "transposed", "one", "repeated", "unaligned"])
def test_arguments_of_any_layout(lay_out, name):
    function, derivative = DERIVATIVES[name]
    x = lay_out(np.random.default_rng(0).uniform(-10, 10, 600))
    np.testing.assert_allclose(gradient(function, tensor_of(x)), derivative(x), 1e-15)


@each("name", DERIVATIVES)
@each("dtype, rtol", [
    ("float32", 1e-6), ("float16", 2e-3), ("longdouble", 1e-18), ("complex128", 1e-14)])
def test_other_dtypes(dtype, rtol, name):
    function, derivative = DERIVATIVES[name]
    x = np.random.default_rng(0).uniform(-1, 1, 600).astype(dtype)
    found = gradient(function, x)
    assert found.dtype == dtype
    np.testing.assert_allclose(found, np.conj(derivative(x)), rtol)


@each("size", [10, 64, 65, 600, 5000])
def test_the_function_itself_is_numpys(size):
    x = np.random.default_rng(0).uniform(-100, 100, size)
    np.testing.assert_array_equal(cnp.sin(cytape.constant(x)).numpy(), np.sin(x))
    np.testing.assert_array_equal(cnp.cos(cytape.constant(x)).numpy(), np.cos(x))


@each("size", [65, 513, 5000])
def test_derivatives_of_all_orders(size):
    x = np.random.default_rng(0).uniform(-3, 3, size)
    first = cytape.grad(lambda x: np.sum(np.sin(x)))
    second = cytape.grad(lambda x: np.sum(first(x)))
    third = cytape.grad(lambda x: np.sum(second(x)))
    for derivative, expected in [(first, np.cos(x)), (second, -np.sin(x)), (third, -np.cos(x))]:
        np.testing.assert_allclose(np.asarray(derivative(x)), expected, 1e-14)


@each("size", [65, 600, 9001])
def test_gradients_that_meet(size):
    x = np.random.default_rng(0).uniform(-3, 3, size)
    found = gradient(lambda x: [np.sin(x), np.cos(x), np.sin(x) * np.cos(x), x], x)
    np.testing.assert_allclose(found, np.cos(x) - np.sin(x) + np.cos(2 * x) + 1, 1e-12, 1e-13)


@each("size", [65, 600, 9001])
@each("function", [np.maximum, np.minimum])
def test_extrema_of_arrays_and_numbers(function, size):
    x, y = np.random.default_rng(0).normal(size=(2, size))
    x[::7], y[::5], x[3], x[4] = np.nan, np.nan, np.inf, -np.inf
    f, g = FusedFunction(lambda x, y: function(x, y), 2), FusedFunction(lambda x: function(0, x), 1)
    x[8], x[9] = 0.0, -0.0
    for operands in ((x, y), (x, 0.5), (0.5, x), (x, np.nan), (np.nan, x), (x, 0.0), (x, -0.0)):
        np.testing.assert_array_equal(f(*operands), function(*operands))
    np.testing.assert_array_equal(g(x), function(0, x))
    slopes = gradient(lambda x: function(function(x * x, 0.5), y), x)
    is_chosen = function(x * x, 0.5) == x * x
    expected = np.where(is_chosen & (function(x * x, y) == x * x), 2 * x, 0)
    here = np.isfinite(x) & ~np.isnan(y)
    np.testing.assert_allclose(slopes[here], expected[here])
