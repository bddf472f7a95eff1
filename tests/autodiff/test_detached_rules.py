"""Derivatives that rules of users lose: errors where they matter, not zeros."""

import functools
from types import SimpleNamespace

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from cytape.errors import DetachedError
from tests import ways
from tests.cases import each

F = cytape.function
x = np.array([1.0, 4.0])


def by_array(a):
    return np.sqrt(np.asarray(cytape.stop_gradient(a)))


# Reads of the gradient function: (forward, a, y) -> grad_fn.
def reads_result(a, y):
    return lambda dy: dy * 0.5 / y


def reads_list(a, y):
    kept = [y]
    return lambda dy: dy * 0.5 / kept[0]


def reads_function(a, y):
    def slope():
        return 0.5 / y

    return lambda dy: dy * slope()


def reads_object(a, y):
    kept = SimpleNamespace(y=y)
    return lambda dy: dy * 0.5 / kept.y


def reads_default(a, y):
    return lambda dy, y=y: dy * 0.5 / y


def reads_tensor(a, y):
    slope = cytape.constant(0.5 / np.asarray(y))
    return lambda dy: dy * slope


def reads_partial(a, y):
    return functools.partial(lambda slope, dy: dy * slope, 0.5 / y)


class Slope:
    def __init__(self, y):
        self.y = y

    def __call__(self, dy):
        return dy * 0.5 / self.y


KEPT = SimpleNamespace(y=None)
CACHE = {}


def reads_callable_object(a, y):
    return Slope(y)


def reads_bound_method(a, y):
    return Slope(y).__call__


def reads_older_object(a, y):
    KEPT.y = y
    return lambda dy: dy * 0.5 / KEPT.y


def reads_older_dict(a, y):
    CACHE["y"] = y
    return lambda dy: dy * 0.5 / CACHE["y"]


def reads_global_name(a, y):
    global newest
    newest = y
    return lambda dy: dy * 0.5 / newest


BUFFER = np.empty(2)
LARGE = np.zeros((1 << 18, 2))


def reads_older_buffer(a, y):
    part = BUFFER[: np.size(y)].reshape(np.shape(y))
    part[...] = y
    return lambda dy: dy * 0.5 / part


def reads_row_of_large_buffer(a, y):
    LARGE[: 1 << 10, : np.size(y)] = y
    return lambda dy: dy * 0.5 / LARGE[7, : np.size(y)].reshape(np.shape(y))


def reads_out(a, y):
    part = np.sqrt(np.asarray(y), out=BUFFER[: np.size(y)].reshape(np.shape(y)))
    return lambda dy: dy * 0.5 / part**2


def reads_wrapped_function(a, y):
    return cytape.function(lambda dy: dy * 0.5 / y)


def reads_beside_the_argument(a, y):
    return lambda dy: dy * 0.5 * y / a


def leaves_in_rule(a, y):
    return lambda dy: dy * 0.5 / np.sqrt(a.numpy())


def leaves_in_rule_stopped(a, y):
    return lambda dy: dy * 0.5 / np.sqrt(np.asarray(cytape.stop_gradient(a)))


LOST = [
    reads_result, reads_list, reads_function, reads_object, reads_default, reads_tensor,
    reads_partial, reads_callable_object, reads_bound_method, reads_older_object, reads_older_dict,
    reads_global_name, reads_older_buffer, reads_row_of_large_buffer, reads_out,
    reads_wrapped_function, reads_beside_the_argument, leaves_in_rule,
    leaves_in_rule_stopped,
]


def nested(maker):
    """Have the maker's locals be those of the function that has the custom gradient."""

    @cytape.custom_gradient
    def root(a):
        y = by_array(a)
        if maker is reads_result:
            return y, lambda dy: dy * 0.5 / y
        return y, maker(a, y)

    return root


def summed(root):
    return lambda a: np.sum(root(a) * a)


def looped(f):
    return lambda a: cytape.while_loop(lambda i, y: i < 2, lambda i, y: (i + 1, f(y)), (0, a))[1]


SECOND_ORDER = {
    "grad of grad": lambda f: cytape.grad(lambda a: np.sum(cytape.grad(summed(f))(a))),
    "hessian": lambda f: cytape.hessian(summed(f)),
    "forward over reverse": lambda f: cytape.jacfwd(cytape.grad(summed(f))),
    "reverse over forward": lambda f: cytape.jacrev(cytape.jacfwd(summed(f))),
    "forward over forward": lambda f: cytape.jacfwd(cytape.jacfwd(summed(f))),
    "function of hessian": lambda f: F(cytape.hessian(summed(f))),
    "hessian of function": lambda f: cytape.hessian(F(summed(f))),
    "grad of function of grad":
        lambda f: cytape.grad(lambda a: np.sum(F(cytape.grad(summed(f)))(a))),
    "vmap": lambda f: cytape.vmap(cytape.grad(cytape.grad(lambda a: f(a) * a))),
    "loop": lambda f: cytape.hessian(lambda a: np.sum(looped(f)(a))),
    "function of loop": lambda f: F(cytape.hessian(lambda a: np.sum(looped(f)(a)))),
    "branch": lambda f: cytape.hessian(
        lambda a: np.sum(cytape.cond(a[0] > 0, lambda: f(a) * a, lambda: a))),
    "function of branch": lambda f: F(cytape.hessian(
        lambda a: np.sum(cytape.cond(a[0] > 0, lambda: f(a) * a, lambda: a)))),
    "recomputed": lambda f: cytape.hessian(cytape.recompute_grad(summed(f))),
}


@each(way=SECOND_ORDER, maker=LOST)
def test_a_gradient_function_that_reads_what_left_the_tape_has_no_second_order(maker, way):
    root = nested(maker)
    np.testing.assert_allclose(cytape.grad(lambda a: np.sum(root(a)))(x), 0.5 / np.sqrt(x))
    np.testing.assert_allclose(cytape.jvp(root, (x,), (np.ones(2),))[1], 0.5 / np.sqrt(x))
    with pytest.raises(DetachedError, match="grad_fn of root"):
        SECOND_ORDER[way](root)(x)


@each(way=SECOND_ORDER, place=["list", "local", "argument"])
def test_a_gradient_function_that_reads_what_left_in_an_inner_function_has_no_second_order(
    place, way
):
    @cytape.custom_gradient
    def root(a):
        kept, local = [], np.empty(np.shape(a))

        def inner(b, buffer):
            y = by_array(b)
            kept.append(y)
            local[...] = y
            buffer[...] = y
            return b * 1.0, lambda dy: (dy, None)

        buffer = np.empty(np.shape(a))
        cytape.custom_gradient(inner)(a, buffer)
        read = {"list": lambda: kept[0], "local": lambda: local, "argument": lambda: buffer}[place]
        return np.sqrt(a), lambda dy: dy * 0.5 / read()

    np.testing.assert_allclose(cytape.grad(lambda a: np.sum(root(a)))(x), 0.5 / np.sqrt(x))
    with pytest.raises(DetachedError, match="grad_fn of root"):
        SECOND_ORDER[way](root)(x)


@cytape.custom_gradient
def rectified(a):
    mask = a.numpy() > 2.0
    return np.where(mask, a, 0.0), lambda dy: np.where(mask, dy, 0.0)


@cytape.custom_gradient
def rectified_square(a):
    mask = a.numpy() > 2.0
    return np.where(mask, a * a, 0.0), lambda dy: np.where(mask, 2.0 * a * dy, 0.0)


@each("way", SECOND_ORDER)
@each("f, plain", [
    (rectified, lambda a: np.where(a > 2.0, a, 0.0)),
    (rectified_square, lambda a: np.where(a > 2.0, a * a, 0.0))])
def test_masks_of_values_that_left_are_constants(f, plain, way):
    np.testing.assert_allclose(SECOND_ORDER[way](f)(x), SECOND_ORDER[way](plain)(x))


@each("wrapped", [lambda f: f, F])
def test_a_linear_function_with_a_mask_has_no_second_derivative(wrapped):
    """Not of its sum either, whose gradient does not depend on the argument at all."""
    for second in (cytape.jacrev, cytape.jacfwd):
        assert not second(cytape.grad(wrapped(lambda a: np.sum(rectified(a)))))(x).any()


def test_a_value_that_leaves_a_function_with_its_own_gradient_is_noted():
    kept = []
    keep = cytape.custom_gradient(lambda a: (kept.append(a.numpy()) or a * 1.0, lambda dy: dy))

    def f(a):
        keep(a)
        return np.sum(kept[-1] ** 2)

    with pytest.raises(DetachedError, match="left its tensor"):
        cytape.grad(f)(x)


@each("wrapped", [lambda f: f, F])
def test_a_gradient_function_may_read_objects_that_are_older_than_the_call(wrapped):
    class Layer:
        def __init__(self):
            self.weights, self.factors, self.shapes = np.array([2.0, 3.0]), {"half": 0.5}, []

        def __call__(self, a):
            @cytape.custom_gradient
            def weighted(a):
                self.shapes.append(np.asarray(cytape.stop_gradient(a)).shape)
                return a**2 * self.weights, lambda dy: dy * a * self.weights / self.factors["half"]

            return weighted(a)

    layer = Layer()
    np.testing.assert_allclose(
        wrapped(cytape.hessian(lambda a: np.sum(layer(a))))(x), np.diag([4.0, 6.0]))


def test_a_second_derivative_that_is_multiplied_by_zero_is_not_needed():
    root = nested(reads_result)
    assert cytape.grad(lambda a: 0.0 * cytape.grad(root)(a) + a * a)(4.0) == 8.0


def test_tapes_that_do_not_follow_the_argument_see_no_error():
    root = nested(reads_result)
    a, b = cytape.constant(4.0), cytape.constant(3.0)
    with cytape.GradientTape() as outer, cytape.GradientTape() as middle:
        outer.watch(b)
        middle.watch(a)
        slope = ways.gradient(root, a) * b
    assert float(outer.gradient(slope, b)) == 0.25
    with pytest.raises(DetachedError, match="grad_fn of root"):
        middle.gradient(slope, a)


@cytape.custom_gradient
def transformed(a):
    """Multiply by 3 in foreign code: linear, so that its second derivative is zero."""
    return 3.0 * np.asarray(cytape.stop_gradient(a)), lambda dy: 3.0 * dy


@cytape.custom_gradient
def masked(a):
    """Select in foreign code."""
    array = np.asarray(cytape.stop_gradient(a))
    mask = array > 2.0
    return np.where(mask, array, 0.0), lambda dy: np.where(mask, dy, 0.0)


@cytape.custom_gradient
def scaled(a, factor):
    """Multiply by an array that is an argument, and a number in the source."""
    half = 0.5
    return (
        half * factor * np.asarray(cytape.stop_gradient(a)),
        lambda dy: (dy * factor * half, None))


@each("way", SECOND_ORDER)
@each("f", [transformed, masked, lambda a: scaled(a, np.array([6.0, 6.0])[:np.ndim(a) and 2])])
def test_linear_functions_of_foreign_code_have_second_derivatives(f, way):
    if way == "vmap" and f not in (transformed, masked):
        pytest.skip("the factor is an array")
    plain = {transformed: lambda a: 3.0 * a, masked: lambda a: np.where(a > 2.0, a, 0.0)}.get(
        f, lambda a: 3.0 * a)
    np.testing.assert_allclose(SECOND_ORDER[way](f)(x), SECOND_ORDER[way](plain)(x))


@each("way", SECOND_ORDER)
def test_a_gradient_function_that_computes_with_its_arguments_is_right_in_every_order(way):
    @cytape.custom_gradient
    def root(a):
        return by_array(a), lambda dy: dy * 0.5 / root(a)

    np.testing.assert_allclose(SECOND_ORDER[way](root)(x), SECOND_ORDER[way](np.sqrt)(x))


# -- rules of other kinds --------------------------------------------------------------------------


def by_numpy_function(a):
    return cytape.numpy_function(
        np.sqrt, a, specs=a.spec,
        grad_func=lambda a, dy: dy * 0.5 / np.sqrt(np.asarray(cytape.stop_gradient(a))))


def by_record_operation(a):
    with cytape.stop_recording():
        y = cytape.constant(np.sqrt(a.numpy()))
    cytape.record_operation(
        "Root", [y], [a], lambda dy: [dy * 0.5 / np.sqrt(np.asarray(cytape.stop_gradient(a)))])
    return y


@cytape.custom_jvp
def by_custom_jvp(a):
    return np.sqrt(np.asarray(a))


@by_custom_jvp.defjvp
def by_custom_jvp_rule(primals, tangents):
    y = np.sqrt(np.asarray(cytape.stop_gradient(primals[0])))
    return y, tangents[0] * 0.5 / y


@each("way", ["grad of grad", "hessian", "forward over reverse",
                                 "reverse over forward", "forward over forward"])
@each("f", [by_numpy_function, by_record_operation, by_custom_jvp])
def test_every_rule_that_reads_what_left_the_tape_has_no_second_order(f, way):
    g = lambda a: f(cnp.asarray(a) + 0.0 * cytape.convert_to_tensor(a))  # noqa: E731
    np.testing.assert_allclose(cytape.grad(lambda a: np.sum(g(a)))(x), 0.5 / np.sqrt(x))
    with pytest.raises(DetachedError):
        SECOND_ORDER[way](g)(x)


# -- gradient functions that are not linear --------------------------------------------------------


@each(grad_fn=[
    lambda dy: np.array([0.0, 4.0]), lambda dy: 2.0 * cytape.constant(x), lambda dy: dy.numpy() * 3,
    lambda dy: dy.item(0) * 3.0 * np.ones(2),
], wrapped=[lambda f: f, F])
def test_a_gradient_function_that_ignores_its_argument_is_refused_in_forward_mode(grad_fn, wrapped):
    f = cytape.custom_gradient(lambda a: (a * a, grad_fn))
    cytape.grad(wrapped(lambda a: np.sum(f(a))))(x)
    for transform in (lambda f: f, F):
        with pytest.raises(DetachedError, match="not linear|left"):
            transform(lambda a: cytape.jvp(wrapped(f), (a,), (np.ones(2),))[1])(x)


@each("zero", [lambda n: None, lambda n: np.zeros(2), lambda n: cnp.zeros(2), np.zeros_like])
@each("wrapped", [lambda f: f, F])
def test_a_gradient_that_is_zero_is_linear(zero, wrapped):
    f = cytape.custom_gradient(lambda a, n: (a * a, lambda dy: (3.0 * dy, zero(n))))
    tangent = cytape.jvp(wrapped(f), (x, x), (np.ones(2), np.ones(2)))[1]
    np.testing.assert_allclose(tangent, [3.0, 3.0])
