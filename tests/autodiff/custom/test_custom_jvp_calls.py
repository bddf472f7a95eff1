"""Functions with a JVP rule: calls with keyword arguments, and calls in traces."""

import math

import numpy as np
import pytest

import cytape
from cytape.errors import DetachedError, SymbolicTensorError
from tests.autodiff.custom.test_custom_jvp import derivative, with_rule
from tests.cases import each

# -- keyword arguments -----------------------------------------------------------------------------


@each("place", [lambda f: f, lambda f: cytape.function(f)])
def test_keywords_that_the_rule_does_not_take_are_arguments(place):
    seen = []

    @cytape.custom_jvp
    def f(x, scale=2.0, power=1.0, *, shift=0.0):
        return scale * x**power + shift

    @f.defjvp
    def rule(primals, tangents, shift=0.0):
        seen.append((len(primals), shift))
        x, scale, power = (*primals, 2.0, 1.0)[: 2 if len(primals) == 2 else 3]  + (
            (1.0,) if len(primals) == 2 else ())
        dx, dscale, _ = (*tangents, 0.0, 0.0)[:3]
        return None, scale * power * x ** (power - 1.0) * dx + x**power * dscale

    for call, expected in (
        (lambda x: f(x), 2.0), (lambda x: f(x=x), 2.0), (lambda x: f(x, scale=3.0), 3.0),
        (lambda x: f(x, scale=x), 6.0), (lambda x: f(x=x, scale=x, shift=5.0), 6.0),
        (lambda x: f(x, power=2.0), 12.0),
        (lambda x: f(x, 3.0, power=2.0, shift=1.0), 18.0),
        (lambda x: f(power=2.0, scale=x, x=x), 27.0),
    ):
        assert derivative(place(call))(3.0) == expected
        assert cytape.grad(place(call))(3.0) == expected
        assert float(place(call)(cytape.constant(3.0))) == float(call(3.0))
    assert (2, 5.0) in seen
    assert (3, 1.0) in seen


def test_keywords_that_neither_function_nor_rule_takes():
    @cytape.custom_jvp
    def f(x, *, scale=1.0):
        return x * scale

    f.defjvp(lambda primals, tangents: (None, tangents[0]))
    for x in (2.0, cytape.constant(2.0)):
        with pytest.raises(TypeError, match="f was called with the keyword arguments 'scale', which"
                                            " its JVP rule does not take"):
            f(x, scale=3.0)
        with pytest.raises(TypeError, match="'unknown'"):
            f(x, unknown=3.0)
    with pytest.raises(TypeError, match="'dtype'"):
        with_rule(np.sqrt, lambda p, t: (None, t[0]))(2.0, dtype=float)
    between = cytape.custom_jvp(lambda x, option=1.0, y=1.0: x * option * y)
    between.defjvp(lambda primals, tangents, option=1.0: (None, tangents[0]))
    with pytest.raises(TypeError, match="'y'"):
        between(2.0, option=3.0, y=2.0)
    assert between(2.0, option=3.0) == 6.0
    assert between(2.0, 3.0, y=2.0) == 12.0


def test_keywords_of_methods():
    class Layer:
        @cytape.custom_jvp
        def apply(self, x, scale=1.0):
            return x * scale

        @apply.defjvp
        def apply_jvp(self, primals, tangents):
            (x, scale), (dx, dscale) = primals, tangents
            return None, dx * scale + x * dscale

    assert cytape.grad(lambda x: Layer().apply(x, scale=x))(3.0) == 6.0
    assert cytape.grad(lambda x: Layer().apply(scale=x, x=2.0))(3.0) == 2.0


# -- in graphs -------------------------------------------------------------------------------------


def test_a_recorded_tensor_from_a_closure_is_refused_in_a_trace():
    def scaled(w, stop=lambda w: w):
        @cytape.custom_jvp
        def f(x):
            return x * stop(w)

        @f.defjvp
        def rule(primals, tangents):
            return f(*primals), tangents[0] * 2.0

        return f(w * 0.0 + 2.0)

    w = cytape.constant(3.0)
    assert float(cytape.function(scaled)(w)) == 6.0  # no recorder is active
    for transform in (cytape.grad, lambda f: lambda w: cytape.jvp(f, (w,), (1.0,))):
        for f in (transform(cytape.function(scaled)), cytape.function(transform(scaled))):
            with pytest.raises(TypeError, match="f has a custom JVP, but depends on a tensor that"):
                f(w)
    assert float(cytape.grad(cytape.function(lambda w: scaled(w, cytape.stop_gradient)))(w)) == 0.0


def test_variables_that_are_no_arguments_in_a_trace():
    v = cytape.Variable(3.0)
    for read in (lambda x: x * v, lambda x: x.numpy() * v):
        f = with_rule(read, lambda p, t: (None, t[0] * v))
        with pytest.raises(TypeError, match="reads .*Variable.*not among its arguments: pass it"):
            cytape.function(lambda x, f=f: f(x))(cytape.constant(2.0))


def test_a_trial_has_no_side_effects_before_a_value_is_needed():
    count = cytape.Variable(0.0, trainable=False)

    def counting(x):
        count.assign_add(1.0)
        return np.array(x.numpy() * 2.0)

    f = with_rule(counting, lambda p, t: (None, 2.0 * t[0]))
    with pytest.raises(SymbolicTensorError, match="numpy_function"):
        cytape.function(lambda x: f(x))(cytape.constant(1.0))
    assert float(count) == 0.0
    assert float(f(cytape.constant(3.0))) == 6.0 and float(count) == 1.0


def test_rules_that_leave_cytape_in_a_trace():
    def rule(primals, tangents):
        return None, np.array(2.0 * primals[0].numpy() * tangents[0].numpy())

    f = with_rule(np.square, rule)
    traced = cytape.function(lambda x: f(x))
    assert derivative(traced)(3.0) == cytape.function(derivative(f))(3.0) == 6.0
    for second in derivative(cytape.function(derivative(f))), derivative(derivative(traced)):
        with pytest.raises(DetachedError, match="left (its tensor|their tensors)"):
            second(3.0)
    with pytest.raises(DetachedError, match="JVP rule of square cannot be transposed"):
        cytape.grad(traced)(3.0)


def test_functions_that_leave_cytape_in_a_batch():
    f = with_rule(lambda x: np.asarray([math.exp(v) for v in np.ravel(x)]),
                  lambda p, t: (None, t[0] * np.exp(p[0])))
    x = np.array([[0.3, 0.8], [1.2, 0.5]])
    for function in cytape.vmap(f), cytape.function(cytape.vmap(f)):
        np.testing.assert_allclose(function(x), np.exp(x))
        np.testing.assert_allclose(cytape.grad(lambda x: np.sum(function(x)))(x), np.exp(x))  # noqa: B023
        np.testing.assert_allclose(cytape.jvp(function, (x,), (x,))[1], x * np.exp(x))


def test_outputs_of_a_trace_that_are_other_than_expected():
    """The dtype that the function returns depends on the value."""
    f = with_rule(lambda x: np.emath.sqrt(np.asarray(x)), lambda p, t: (None, t[0]))
    traced = cytape.function(lambda x: f(x))
    assert float(traced(cytape.constant(4.0))) == 2.0
    with pytest.raises(ValueError, match="complex128; its spec says .* float64") as info:
        traced(cytape.constant(-4.0))
    assert __file__ in "".join(info.value.__notes__)


def test_arrays_among_the_arguments_of_a_trace_stay_what_they_were():
    f = with_rule(
        lambda x, w: np.array(x.numpy() * w), lambda p, t: (None, t[0] * p[1] + p[0] * t[1]))
    w = np.array([1.0, 2.0])
    traced = cytape.function(lambda x: f(x, w))
    x = cytape.constant(np.array([3.0, 5.0]))
    assert traced(x).numpy().tolist() == [3.0, 10.0]
    w[:] = 0.0
    assert traced(x).numpy().tolist() == [3.0, 10.0]
    assert cytape.grad(lambda x: np.sum(traced(x)))(x).tolist() == [1.0, 2.0]
