"""Derivatives where rounding, overflow or a root of zero could make them up.

Roots of sums of squares at zero, and where only rounding keeps them from it; counts that half
precision cannot hold and sums it would round off; products of infinities with what stands still.
"""

import warnings

import numpy as np

import cytape
import cytape.numpy as cnp
from tests.cases import each, sampled
from tests.ways import MODES, PLACES, ROUTES, derivatives, watching

inf, nan = np.inf, np.nan

routes = each("mode, place", ROUTES)
places = each("place", PLACES)


# -- roots -----------------------------------------------------------------------------------------


@routes
@each("ddof", [0, 1])
@each(
    "x",
    [
        np.full(3, 0.1), np.full(7, 1 / 3), np.full(1000, 0.7), np.full(5, 1e100), np.zeros(4),
        np.full(3, 0.1, np.float32), np.full(3, 0.1, np.float16), np.full(3, 0.1 + 0.2j),
        np.tile([[0.1], [0.2]], 3)], ids=lambda x: f"{x.dtype}-{x.shape}-{x.flat[0]}")
def test_std_of_equal_elements_has_derivatives_of_zero(x, ddof, mode, place):
    """NumPy's deviation is some 1e-17, as the mean is rounded; the elements are equal all the same.
    """
    t = np.arange(x.size, dtype=x.dtype).reshape(x.shape)
    for found in derivatives(mode, place, lambda x: cnp.std(x, axis=-1, ddof=ddof), [x], [t]):
        np.testing.assert_array_equal(found, np.zeros_like(found))


@places
def test_std_of_elements_one_rounding_apart_is_that_of_their_differences(place):
    """A common offset changes no derivative, also where it hides the deviations."""
    ulp = np.spacing(0.1)
    apart = np.array([0.0, 0.0, 1.0, 3.0])
    (found,) = derivatives("reverse", place, cnp.std, [0.1 + ulp * apart], None)
    (expected,) = derivatives("reverse", "eager", cnp.std, [apart], None)
    np.testing.assert_allclose(found, expected, rtol=1e-14)
    found = cytape.hessian(cnp.std)(0.1 + ulp * apart) * ulp
    np.testing.assert_allclose(found, cytape.hessian(cnp.std)(apart), rtol=1e-13)


def test_variance_far_from_zero():
    x = 1e8 + np.array([0.0, 1.0, 2.0, 4.0])
    np.testing.assert_allclose(cytape.grad(np.var)(x), (x - 1e8 - 1.75) / 2, rtol=1e-14)


ROOTS = {
    "norm": np.linalg.norm, "norm of order 3": lambda x: np.linalg.norm(x, 3),
    "norm of order 1/2": lambda x: np.linalg.norm(x, 0.5),
    "norm of order -1": lambda x: np.linalg.norm(x, -1),
    "norm of order inf": lambda x: np.linalg.norm(x, np.inf),
    "norm of order 1": lambda x: np.linalg.norm(x, 1), "hypot": lambda x: np.hypot(x[0], x[1]),
    "arctan2": lambda x: np.arctan2(x[0], x[1]), "magnitude": lambda x: np.abs(x[0] + 1j * x[1]),
    "std": np.std}


@routes
@each("root", ROOTS)
def test_derivatives_of_roots_at_zero_are_zero(root, mode, place):
    x, t = np.zeros(2), np.array([1.0, 2.0])
    for found in derivatives(mode, place, ROOTS[root], [x], [t]):
        np.testing.assert_array_equal(found, np.zeros_like(found))


INFINITE = {
    **{f"norm of order {order}": (
        lambda x, order=order: np.linalg.norm(x, order), [inf, 1.0, -3.0], [1.0, 0.0, 0.0])
       for order in (None, 1.5, 2, 3, np.inf)},
    "norm along an axis": (lambda x: np.linalg.norm(x, axis=0), [1.0, -inf], [0.0, -1.0]),
    "Frobenius": (lambda x: np.linalg.norm(x[None], "fro"), [1.0, -inf], [0.0, -1.0]),
    "hypot": (lambda x: np.hypot(x[0], x[1]), [inf, 3.0], [1.0, 0.0]),
    "hypot of the second": (lambda x: np.hypot(x[0], x[1]), [3.0, -inf], [0.0, -1.0]),
}


@routes
@each(dtype=["f2", "f4", "f8"], name=INFINITE)
def test_an_infinite_component_moves_a_length_by_its_sign(name, dtype, mode, place):
    f, x, gradient = INFINITE[name]
    x, gradient, t = (np.array(values, dtype) for values in (x, gradient, np.arange(1, len(x) + 1)))
    found = derivatives(mode, place, f, [x], [t])
    for first in found if mode == "reverse" else ():
        np.testing.assert_array_equal(first, gradient)
    for derivative in found:
        assert np.isfinite(derivative).all()


@each("order", [0.5, 0.9, 1, 1.5, 2, 3])
def test_a_zero_among_others_has_a_gradient_of_zero(order):
    gradient = cytape.grad(lambda x: np.linalg.norm(x, order))(np.array([3.0, 0.0]))
    np.testing.assert_allclose(gradient, [1.0, 0.0], rtol=1e-14)


@each("order", [0.5, 0.9, 1, 1.5, 2, 3])
def test_the_others_are_curved_as_they_are_without_the_zero(order):
    hessian = cytape.hessian(lambda x: np.linalg.norm(x, order))
    found = hessian(np.array([0.0, 1.0, 2.0]))
    np.testing.assert_allclose(found[1:, 1:], hessian(np.array([1.0, 2.0])), atol=1e-14)
    np.testing.assert_array_equal(found[0, 1:], [0.0, 0.0])
    np.testing.assert_array_equal(found[1:, 0], [0.0, 0.0])


@routes
@each("order", [None, 1.5, 3])
def test_the_direction_of_a_norm_beyond_half_precision(order, mode, place):
    def f(x):
        return np.linalg.norm(x, order)

    x, t = np.full(3, 30_000, np.float16), np.array([1.0, 0.5, 0.25], np.float16)
    found = derivatives(mode, place, f, [x], [t])
    wide = derivatives(mode, "eager", f, [x.astype(float)], [t.astype(float)])
    for half_found, expected in zip(found, wide, strict=True):
        np.testing.assert_allclose(half_found, expected, rtol=2e-3, atol=1e-4)


# -- counts in half precision ----------------------------------------------------------------------

MANY = 70_000  # more than the largest number of half precision, 65,504


def half(n):
    return np.resize(np.array([0.0, 1.0, 0.5, 0.25], np.float16), n)


COUNTING = {
    "mean": cnp.mean, "var": cnp.var, "std": cnp.std,
    "var of rows": lambda x: cnp.var(cnp.reshape(x, (2, -1)), axis=1),
    "max of ties": lambda x: cnp.max(x), "min of ties": lambda x: cnp.min(x),
    "logsumexp": lambda x: cytape.nn.logsumexp(x),
    "softmax": lambda x: cytape.nn.softmax(x) * (1000 * half(MANY)),
    "log_softmax": lambda x: cytape.nn.log_softmax(x)[:100],
    # Of this size, so that what it has in all for its statistics fits half precision.
    "batch norm": lambda x: 1e-3 * cytape.nn.fused_batch_norm(
        cnp.reshape(x, (-1, 1)), np.ones(1, np.float16), np.ones(1, np.float16))[0] ** 4,
}


@sampled(4, mode=MODES, function=COUNTING)
def test_counts_beyond_half_precision(function, mode):
    f = COUNTING[function]
    x, t = half(MANY), np.resize(np.array([1.0, 0.5, 0.25], np.float16), MANY)
    wide = derivatives(mode, "eager", f, [x.astype(float)], [t.astype(float)])
    for place in PLACES:
        found = derivatives(mode, place, f, [x], [t])
        for half_found, expected in zip(found, wide, strict=True):
            assert half_found.dtype == np.float16
            atol = 2.0**-23 + 1e-2 * np.abs(expected).max()  # 2**-24 is the smallest half
            np.testing.assert_allclose(half_found, expected, rtol=1e-2, atol=atol, err_msg=place)


def test_counts_of_unknown_extents():
    f = cytape.function(
        lambda x: cytape.grad(cnp.mean)(x), input_signature=[cytape.Spec.of((None,), "float16")])
    np.testing.assert_allclose(f(half(MANY)), 1 / MANY, rtol=1e-2)


def test_the_softmax_of_many_halves():
    softmax = cytape.nn.softmax(np.zeros(MANY, np.float16))
    assert softmax.dtype == np.float16
    np.testing.assert_allclose(softmax, 1 / MANY, rtol=1e-2)
    assert np.isfinite(cytape.nn.log_softmax(np.zeros(MANY, np.float16))).all()


# -- sums in half precision ------------------------------------------------------------------------

ROWS = 40_000  # a running sum of ones in half precision stops at 2,048
ZEROS, FIRSTS = np.zeros((ROWS, 2), np.float16), np.zeros(ROWS, int)
SMALL = np.float16(0.001)  # lest the right sum overflow

SPREADING = {
    "add": lambda b: b + ZEROS, "multiply": lambda b: b * (ZEROS + np.float16(1)),
    "maximum": lambda b: cnp.maximum(b, ZEROS - np.float16(1)),
    "where": lambda b: cnp.where(ZEROS == 0, b, ZEROS),
    "broadcast_to": lambda b: cnp.broadcast_to(b, ZEROS.shape),
    "tile": lambda b: cnp.tile(b, (ROWS, 1)),
    "repeat": lambda b: cnp.repeat(cnp.reshape(b, (1, 2)), ROWS, axis=0),
    "repeat with counts": lambda b: cnp.repeat(b, np.array([ROWS, ROWS - 1])),
    "index": lambda b: b[FIRSTS], "gather": lambda b: cytape.gather(b, FIRSTS),
    "take": lambda b: cnp.take(b, FIRSTS, axis=0, mode="clip"),
    "take_along_axis": lambda b: cnp.take_along_axis(b, FIRSTS, 0),
    "cumsum": lambda b: cnp.cumsum(cnp.concatenate([b, ZEROS[:, 0]]))}


@each(place=PLACES, function=SPREADING)
def test_gradients_of_many_halves_are_summed_in_single_precision(function, place):
    f, b = SPREADING[function], np.zeros(2, np.float16)
    (found,) = derivatives("reverse", place, lambda b: SMALL * f(b), [b], None)
    (wide,) = derivatives("reverse", place, lambda b: float(SMALL) * f(b), [b.astype(float)], None)
    assert found.dtype == np.float16 and wide.max() > 35
    np.testing.assert_allclose(found, wide, rtol=2e-3)


def test_gradients_of_many_halves_along_an_unknown_extent():
    def f(b, a):
        return cytape.grad(lambda b: np.sum(SMALL * (a + b)))(b)

    signature = [cytape.Spec.of((2,), "float16"), cytape.Spec.of((None, 2), "float16")]
    gradient = cytape.function(f, input_signature=signature)(np.zeros(2, np.float16), ZEROS)
    np.testing.assert_allclose(gradient, float(SMALL) * ROWS, rtol=2e-3)


# -- infinities ------------------------------------------------------------------------------------


@each("function", [cnp.prod, lambda x: cnp.cumprod(x)[-1]])
@each(x=[[0.0, inf], [inf, 0.0, 2.0], [1e200, 1e200, 1.0], [nan, 0.0, 1.0], [
    3.0, inf, 2.0, 5.0]], place=["eager", "in_function", "in_graph"])
def test_both_modes_have_the_same_products_of_others(function, x, place):
    x = np.array(x)
    (gradient,) = derivatives("reverse", place, function, [x], None)
    for direction, expected in zip(np.eye(len(x)), gradient, strict=True):
        (tangent,) = derivatives("forward", place, function, [x], [direction])
        np.testing.assert_array_equal(tangent, expected)


@places
def test_a_gradient_of_zero_meets_no_infinite_product(place):
    x = np.array([[1e200] * 3, [1.0, 2.0, 3.0]])
    (gradient,) = derivatives(
        "reverse", place, lambda x: np.array([0.0, 1.0]) * np.prod(x, axis=1), [x], None)
    np.testing.assert_array_equal(gradient, [[0.0, 0.0, 0.0], [6.0, 3.0, 2.0]])


def test_a_tangent_of_zero_is_still_differentiated():
    """Factors without a tangent are left out only where the other factor is infinite."""
    x = cytape.constant([2.0, 3.0, 4.0])
    for function in (cnp.prod, lambda x: cnp.cumprod(x)[-1]):
        t = cytape.constant(np.zeros(3))
        with watching(t) as tape:
            _, tangent = cytape.jvp(function, (x,), (t,))
        np.testing.assert_array_equal(tape.gradient(tangent, t).numpy(), [12.0, 8.0, 6.0])


@routes
@each(("x", "shares"), [
    ([inf, 0.0], [1.0, 0.0]), ([inf, inf, 1.0], [0.5, 0.5, 0.0]), ([-inf, inf], [0.0, 1.0]),
    ([-inf, -inf], [0.0, 0.0]), ([-inf, 2.0, 2.0], [0.0, 0.5, 0.5])])
def test_logsumexp_of_infinities(x, shares, mode, place):
    x, shares, t = np.array(x), np.array(shares), np.ones(len(x))
    found = derivatives(mode, place, lambda x: cytape.nn.logsumexp(x), [x], [t])
    expected = {"reverse": shares, "forward": np.sum(shares)}.get(mode, np.zeros(len(x)))
    np.testing.assert_allclose(found[0], expected, atol=1e-15)


@routes
@each("function", [np.logaddexp, np.logaddexp2])
@each(("x", "y", "shares"), [
    (inf, inf, (0.5, 0.5)), (inf, 1.0, (1.0, 0.0)), (-inf, -inf, (1.0, 1.0)),
    (-inf, inf, (0.0, 1.0))])
def test_logaddexp_of_infinities(function, x, y, shares, mode, place):
    ones = [np.array(1.0), np.array(1.0)]
    found = derivatives(mode, place, function, [np.array(x), np.array(y)], ones)
    expected = {"reverse": shares, "forward": (np.sum(shares),)}.get(mode, (0.0, 0.0))
    np.testing.assert_allclose(found, expected, atol=1e-15)


@places
@each("dtype", ["complex64", "complex128"])
def test_the_sign_of_a_complex_infinity_is_that_of_numpy(dtype, place):
    x = np.array([complex(inf, 1.0), complex(-2.0, -inf), 3 - 4j, 0j], dtype)
    sign = cytape.function(cnp.sign)(x) if "function" in place else cnp.sign(cytape.constant(x))
    assert sign.dtype == dtype
    np.testing.assert_allclose(sign, np.sign(x), rtol=1e-6)
    (gradient,) = derivatives("reverse", place, lambda x: cnp.real(cnp.sign(x)), [x], None)
    np.testing.assert_allclose(gradient, [0, 0, 0.128 + 0.096j, 0], rtol=1e-6)


@places
@each("dtype", ["complex64", "complex128", "clongdouble"])
def test_the_sign_of_complex_numbers_is_that_of_numpy_to_the_bit(dtype, place):
    parts = [0.0, -0.0, 5e-324, -5e-324, 3e-320, 4e-320, 1e-308, 1e-40, 3.0, -2.5, 1e300, inf, nan]
    x = np.empty((len(parts), len(parts)), dtype)
    with np.errstate(all="ignore"):
        x.real, x.imag = np.meshgrid(parts, parts)
        expected = np.sign(x)
        sign = cytape.function(cnp.sign)(x) if "function" in place else cnp.sign(cytape.constant(x))
    np.testing.assert_array_equal(sign, expected)


@places
@each("dtype", ["complex64", "complex128"])
def test_the_sign_of_complex_numbers_of_any_magnitude_has_its_derivative(dtype, place):
    limits = np.finfo(dtype)
    powers = np.array([limits.minexp - 5, limits.minexp + 2, -3, 0, limits.maxexp // 2], float)
    x = np.array([3 - 4j, 1j], dtype)[:, None] * np.exp2(powers).astype(limits.dtype)
    steps = np.exp2(powers - 10).astype(limits.dtype)  # differences are multiplied by 2**10 / |x|
    assert not np.isinf(1 / np.abs(x[:, 1:])).any()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        (gradient,) = derivatives(
            "reverse", place, lambda x: cnp.real(cnp.sign(x)) * steps, [x], None)
    expected = np.array([0.128 + 0.096j, 1.0]) * 2.0**-10
    np.testing.assert_allclose(gradient, np.broadcast_to(expected[:, None], x.shape), rtol=1e-5)


@each("x", [[nan, 1.0], [nan, inf]])
def test_logsumexp_of_nan_is_nan(x):
    assert np.isnan(cytape.grad(lambda x: cytape.nn.logsumexp(x))(np.array(x))).any()


@each(("y", "x", "slopes"), [
    (1.0, inf, (nan, -0.0)), (inf, 1.0, (0.0, nan)), (3e200, 4e200, (1.6e-201, -1.2e-201)),
    (3e-200, 4e-200, (1.6e199, -1.2e199)), (0.0, -2.0, (-0.5, 0.0)), (5.0, 0.0, (0.0, -0.2))])
def test_arctan2_far_from_one(y, x, slopes):
    with np.errstate(all="ignore"):
        found = cytape.grad(lambda y, x: cnp.arctan2(y, x), argnums=(0, 1))(y, x)
    np.testing.assert_allclose(found, slopes, 1e-15)


@each("f", [
    cytape.nn.softplus, cytape.nn.sigmoid, lambda x: np.arctan2(x, 1.5),
    lambda x: np.arctan2(1.5, x)])
def test_second_derivatives_where_a_forward_pass_might_choose(f):
    x, step = np.array([0.0, -0.0, 1.5, -1.5]), 1e-5
    gradient = cytape.grad(lambda x: np.sum(f(x) * np.arange(1.0, 5.0)))
    found = cytape.jvp(gradient, (x,), (np.ones(4),))[1]
    differences = (gradient(x + step) - gradient(x - step)) / (2 * step)
    np.testing.assert_allclose(found, differences, atol=1e-8)
