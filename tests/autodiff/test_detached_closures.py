"""Users' rules that read tensors of their closures, which have derivatives."""

import functools

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from cytape.errors import DetachedError, TapeStateError
from tests import ways
from tests.autodiff.test_detached_rules import F, looped, x
from tests.bodies import branch
from tests.cases import each, sampled


class Layer:
    """A factor as an attribute, and one that is bound to a method."""

    def __init__(self, w):
        self.w = w

    @cytape.custom_gradient
    def method(self, a):
        return a * self.w, lambda dy: dy * self.w

    def plain(self, a):
        return a * self.w, lambda dy: dy * self.w


def in_closure(w):
    return cytape.custom_gradient(lambda a: (a * w, lambda dy: dy * w))


def computed_of_the_argument(w):
    return lambda a: cytape.custom_gradient(lambda b: (b * (w * a) / a, lambda dy: dy * w))(a)


def in_dict(w):
    p = {"w": [w]}
    return cytape.custom_gradient(lambda a: (a * p["w"][0], lambda dy: dy * p["w"][0]))


def in_attribute(w):
    return Layer(w).method


def in_bound_method(w):
    return cytape.custom_gradient(Layer(w).plain)


def in_partial(w):
    return cytape.custom_gradient(functools.partial(lambda w, a: (a * w, lambda dy: dy * w), w))


def in_default(w):
    return cytape.custom_gradient(lambda a, *, w=w: (a * w, lambda dy: dy * w))


def as_result(w):
    return cytape.custom_gradient(lambda a: (w, lambda dy: 0.0 * dy))


CLOSURES = [in_closure, in_dict, in_attribute, in_bound_method, in_partial, in_default, as_result,
            computed_of_the_argument]
PLACES = {
    "eager": lambda f: f,
    "branch": branch,
    "loop": looped,
    "vmap": cytape.vmap,
    "recomputed": cytape.recompute_grad,
}
PLACES |= {f"function of {name}": lambda f, body=body: F(body(f)) for name, body in PLACES.items()}


@sampled(4, place=PLACES, make=CLOSURES)
def test_a_tensor_that_a_function_closes_over_is_refused_where_it_is_differentiated(make, place):
    f = PLACES[place](lambda w: make(w * 1.0)(cytape.stop_gradient(w)))
    one = np.ones(2)
    for derivative in (
        cytape.grad(lambda w: np.sum(f(w))), lambda w: cytape.jvp(f, (w,), (one,))[1],
        F(cytape.grad(lambda w: np.sum(f(w)))), F(lambda w: cytape.jvp(f, (w,), (one,))[1]),
    ):
        with pytest.raises(DetachedError, match="has a custom gradient, but depends on a tensor"):
            derivative(x)


@sampled(4, place=PLACES, make=[*CLOSURES[:6], lambda w: in_closure(cytape.stop_gradient(w))])
def test_a_tensor_that_a_function_closes_over_may_stand_still(make, place):
    f = PLACES[place](lambda a: make(cytape.stop_gradient(a) * 2.0)(a))
    expected = PLACES[place](lambda a: a * (cytape.stop_gradient(a) * 2.0))
    for transform in (lambda f: f, F):
        np.testing.assert_allclose(
            transform(cytape.grad(lambda a: np.sum(f(a))))(x),
            cytape.grad(lambda a: np.sum(expected(a)))(x))
        np.testing.assert_allclose(
            transform(lambda a: cytape.jvp(f, (a,), (np.ones(2),))[1])(x),
            cytape.jvp(expected, (x,), (np.ones(2),))[1])


@each("wrapped", [lambda f: f, F])
def test_a_gradient_function_may_close_over_any_tensor(wrapped):
    w = cytape.constant(x)

    def f(a, w):
        g = cytape.custom_gradient(lambda b: (b * 2.0, lambda dy: dy * w))
        return np.sum(g(a))

    slope = cytape.grad(lambda a, w: np.sum(cytape.grad(wrapped(f))(a, w) * x), argnums=1)
    np.testing.assert_allclose(slope(x, w), x)


@each("wrapped", [lambda f: f, F])
def test_values_read_for_unrelated_results_do_not_count(wrapped):
    def f(w):
        @cytape.custom_gradient
        def g(a):
            cnp.sum(w)  # which nothing depends on
            return (cnp.where(w > 2.0, a, -a)), lambda dy: np.where(w > 2.0, dy, -dy)

        return np.sum(g(cytape.stop_gradient(w)) * w)

    np.testing.assert_allclose(cytape.grad(wrapped(f))(x), [-1.0, 4.0])


@each("wrapped", [lambda f: f, F])
def test_variables_that_are_read_have_the_gradients_that_are_given(wrapped):
    v = cytape.Variable(3.0)
    f = cytape.custom_gradient(lambda a: (a * v, lambda dy, variables: (dy * v, [dy * 7.0])))
    tape, y = ways.taped(lambda: wrapped(lambda a: f(a))(cytape.constant(2.0)))
    assert float(tape.gradient(y, v)) == 7.0


def test_a_watched_variable_that_is_not_trainable_is_refused():
    v = cytape.Variable(3.0, trainable=False)
    f = cytape.custom_gradient(lambda a: (a * v, lambda dy: dy * v))
    tape, y = ways.taped(lambda v: f(cytape.constant(2.0)), v)
    with pytest.raises(DetachedError, match="depends on a tensor that is not among its arguments"):
        tape.gradient(y, v)


@each("called_before", [False, True])
def test_a_function_that_runs_with_its_graph_does_not_lose_recorded_tensors(called_before):
    found = [cytape.constant(3.0)]

    @cytape.custom_gradient
    def g(a):
        return np.sqrt(np.asarray(cytape.stop_gradient(a))) * found[0], lambda dy: dy * found[0]

    traced = F(lambda a: g(a))
    if called_before:
        np.testing.assert_allclose(traced(x), [3.0, 6.0])

    def f(w):
        found[0] = w
        return np.sum(traced(x))

    with pytest.raises((DetachedError, cytape.errors.SymbolicTensorError),
                       match="not among its arguments"):
        cytape.grad(f)(3.0)


class NotLookedAt:
    @property
    def __dict__(self):
        raise AssertionError


def test_rules_are_bound_without_a_look_at_objects():
    owner = NotLookedAt()

    @cytape.custom_gradient
    def doubled(x):
        return 2 * x, lambda dy: 2 * dy if owner else None

    assert cytape.grad(doubled)(1.0) == 2.0


@each("write", [
    lambda x: x.__setitem__(0, 5.0), lambda x: x[:].__setitem__(0, 5.0),
    lambda x: np.add(x, 1, out=x), lambda x: x.__iadd__(1.0)])
def test_rules_raise_for_a_tensor_in_a_container_that_was_written_to(write):
    weights = [cytape.constant([2.0, 3.0])]
    weights.append(weights[0][1:])

    @cytape.custom_gradient
    def scaled(x):
        return x * weights[0], lambda dy: dy * weights[0]

    x, other = cytape.constant([1.0, 1.0]), cytape.constant([1.0, 1.0])
    tape, y = ways.taped(scaled, x, persistent=True)
    write(other)
    np.testing.assert_array_equal(tape.gradient(y, x), [2.0, 3.0])
    write(weights[0])
    with pytest.raises(TapeStateError, match="changed in place since"):
        tape.gradient(y, x)
