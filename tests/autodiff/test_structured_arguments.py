"""Structures of every kind as arguments and results, of every transform of functions."""

import copy
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from cytape.tensor import nest
from tests import ways
from tests.cases import each, sampled


class Named(NamedTuple):
    w: Any
    b: Any


@cytape.register_structure
@dataclass
class Data:
    w: Any
    b: Any
    power: int = field(default=2, metadata={"static": True})


@cytape.register_structure
@dataclass(frozen=True, slots=True)
class Frozen:
    w: Any
    b: Any


@dataclass
class OfItself:
    """Unregistered dataclass."""

    w: Any
    b: Any


class Registered:
    def __init__(self, w, b, power=2):
        self.content = {"w": w, "b": b}
        self.power = power


cytape.register_structure(
    Registered, lambda x: [x.content],
    lambda like, parts: Registered(**parts[0], power=like.power))

KINDS = {
    "list": lambda w, b: [w, b],
    "tuple": lambda w, b: (w, b),
    "dict": lambda w, b: {"w": w, "b": b},
    "named tuple": Named,
    "dataclass": Data,
    "frozen dataclass": Frozen,
    "dataclass of itself": OfItself,
    "registered": Registered,
    "within each other": lambda w, b: {"layer": [Data(w, (Frozen(b, ()),))]},
}
W, B = np.array([1.0, -2.0]), np.float64(0.5)


def leaves(x):
    """The two leaves of any of these, in the order of w and b."""
    if isinstance(x, Registered):
        x = x.content
    if isinstance(x, dict) and "layer" in x:
        layer = x["layer"][0]
        assert isinstance(layer, Data) and isinstance(layer.b[0], Frozen)
        return layer.w, layer.b[0].w
    if isinstance(x, dict):
        return x["w"], x["b"]
    return tuple(x) if isinstance(x, (list, tuple)) else (x.w, x.b)


def f(x):
    w, b = leaves(x)
    return cnp.sum(cnp.sin(w)) * b**2


def on_leaves(w, b):
    return f((w, b))


def as_tensors(x):
    return nest.map_structure(cytape.constant, x)


def as_variables(x):
    return nest.map_structure(cytape.Variable, x)


GRADIENTS = cytape.grad(on_leaves, (0, 1))(W, B)


def assert_leaves(actual, like, expected):
    assert type(actual) is type(like)
    for x, y in zip(leaves(actual), expected, strict=True):
        np.testing.assert_allclose(np.asarray(x), y, rtol=1e-12)


@sampled(4, make=KINDS.values(), given=[lambda x: x, as_tensors, as_variables],
         way=[lambda f: f, cytape.function, cytape.checkpoint])
def test_gradients(make, given, way):
    x = make(W, B)
    if isinstance(x, OfItself) and given is not GRADIENTS:
        cytape.grad(f)(x)  # which registers the class
    x = given(x)
    value, gradient = cytape.value_and_grad(way(f))(x)
    np.testing.assert_allclose(float(value), on_leaves(W, B))
    assert_leaves(gradient, x, GRADIENTS)
    assert_leaves(cytape.grad(way(f))(x), x, GRADIENTS)
    _, vjp = cytape.vjp(way(f), x)
    assert_leaves(vjp(1.0)[0], x, GRADIENTS)


@each("make", KINDS.values())
def test_derivatives(make):
    x = make(W, B)
    cytape.grad(f)(x)
    for jacobian in (cytape.jacrev, cytape.jacfwd):
        assert_leaves(jacobian(f)(x), x, GRADIENTS)
    _, tangent = cytape.jvp(f, (x,), (make(2 * W, 3 * B),))
    np.testing.assert_allclose(tangent, 2 * W @ GRADIENTS[0] + 3 * B * GRADIENTS[1])
    hessian = cytape.hessian(f)(x)
    expected = cytape.hessian(on_leaves, (0, 1))(W, B)
    for row, expected_row in zip(leaves(hessian), expected, strict=True):
        assert_leaves(row, x, expected_row)
    product = cytape.hessian_vector_product(f)(x, make(W, B))
    assert_leaves(product, x, [
        expected[0][0] @ W + expected[0][1] * B, expected[1][0] @ W + expected[1][1] * B])
    assert_leaves(cytape.elementwise_grad(f)(x), x, GRADIENTS)


@sampled(4, make=KINDS.values(),
         way=[lambda f: f, cytape.function, cytape.checkpoint, cytape.recompute_grad])
def test_results(make, way):
    def double(x):
        w, b = leaves(x)
        return make(2 * w, 2 * b)

    x = make(W, B)
    cytape.grad(f)(x)
    assert_leaves(way(double)(x), x, (2 * W, 2 * B))
    assert_leaves(cytape.grad(lambda x: f(way(double)(x)))(x), x, [
        2 * g for g in cytape.grad(on_leaves, (0, 1))(2 * W, 2 * B)])
    value, tangent = cytape.jvp(way(double), (x,), (x,))
    assert_leaves(value, x, (2 * W, 2 * B))
    assert_leaves(tangent, x, (2 * W, 2 * B))


@each("way", [lambda f: f, cytape.function])
def test_one_leaf(way):
    found = way(lambda x: Frozen(x.w, ()))(Frozen(2.0 * W, ()))
    assert type(found) is Frozen
    np.testing.assert_array_equal(found.w, 2 * W)


@each("make", KINDS.values())
def test_tapes_and_accumulators(make):
    x = make(W, B)
    cytape.grad(f)(x)
    x = as_tensors(x)
    tape, y = ways.taped(f, x)
    assert_leaves(tape.gradient(y, x), x, GRADIENTS)
    with cytape.ForwardAccumulator(x, make(W, B)) as accumulator:
        y = f(x)
    np.testing.assert_allclose(float(accumulator.jvp(y)), W @ GRADIENTS[0] + B * GRADIENTS[1])


@each("make", KINDS.values())
def test_control_flow_and_vmap(make):
    x = make(W, B)
    cytape.grad(f)(x)

    def halved(x):
        w, b = leaves(x)
        return make(w / 2, b / 2)

    def loop(x):
        return cytape.while_loop(lambda x: leaves(x)[1] > 0.1, lambda x: [halved(x)], [x])[0]

    for way in (lambda f: f, cytape.function):
        assert_leaves(way(loop)(x), x, (W / 8, B / 8))
        chosen = way(lambda x: cytape.cond(leaves(x)[1] > 0, lambda: halved(x), lambda: x))(x)
        assert_leaves(chosen, x, (W / 2, B / 2))
    batch = make(np.stack([W, 2 * W]), np.stack([B, 3 * B]))
    found = cytape.vmap(cytape.grad(f))(batch)
    assert_leaves(found, x, [
        np.stack(g) for g in zip(GRADIENTS, cytape.grad(on_leaves, (0, 1))(2 * W, 3 * B),
                                 strict=True)])  # fmt: skip
    if make is Data:
        shared = cytape.vmap(f, (Data(0, None),))(Data(batch.w, B))
        np.testing.assert_allclose(shared, [on_leaves(W, B), on_leaves(2 * W, B)])


@each("make", [Data, Registered])
def test_a_function_is_traced_once_per_kind_and_for_what_is_no_part(make):
    traced = []

    @cytape.function
    def g(x):
        traced.append(x)
        w, b = leaves(x)
        return cnp.sum(w**x.power) + b

    assert float(g(make(W, B))) == 5.5
    assert float(g(make(2 * W, B))) == 20.5
    assert len(traced) == 1
    assert float(g(make(W, B, 3))) == -6.5
    assert float(g(make(np.ones(3), B, 3))) == 3.5
    assert len(traced) == 3
    gradient = cytape.grad(g)
    for _ in range(3):
        np.testing.assert_array_equal(leaves(gradient(make(W, B, 3)))[0], 3 * W**2)
    assert len(traced) == 3


def test_graphs():
    with cytape.Graph().as_default() as graph:
        x = Data(cytape.placeholder("float64", (2,)), cytape.placeholder("float64", ()))
        [gradient] = cytape.gradients(f(x), x)
        with cytape.Session(graph) as session:
            found = session.run([gradient.w, gradient.b], {x.w: W, x.b: B})
    for actual, expected in zip(found, GRADIENTS, strict=True):
        np.testing.assert_allclose(actual, expected)


def test_derivatives_of_any_order():
    value, (first, second) = cytape.jet(f, (Data(W, B),), ([Data(W, B), Data(0 * W, 0 * B)],))
    along = lambda t: f(Data(W + t * W, B + t * B))  # noqa: E731
    np.testing.assert_allclose(first, cytape.grad(along)(0.0))
    np.testing.assert_allclose(second, cytape.grad(cytape.grad(along))(0.0))


def test_objects_that_are_not_parts_stay():
    gradient = cytape.grad(lambda x: f(x))(Data(W, B, power=7))
    assert gradient.power == 7
    frozen = Frozen(W, B)
    assert_leaves(copy.deepcopy(cytape.grad(f)(frozen)), frozen, GRADIENTS)


def test_errors_name_the_part():
    with pytest.raises(TypeError, match=r"argument 0\.b of f has dtype int64"):
        cytape.grad(f)(Data(W, 1))
    with pytest.raises(ValueError, match="structures differ: a Data"):
        cytape.jvp(f, (Data(W, B),), ((W, B),))

    for make in (Data, KINDS["dict"]):
        with pytest.raises(TypeError, match="a structure, but must be one array or tensor"):
            cytape.gradients_function(f)(make(W, B))

    class Other:
        pass

    with pytest.raises(TypeError, match=r"of class Other.* cytape\.register_structure"):
        cytape.grad(f)(Other())


@each("g", [
    lambda x: cnp.sum(x**2), lambda x: (x * 2).sum(), lambda x: x @ x, lambda x: np.sin(x).sum(),
])  # fmt: skip
@each("transform", [cytape.grad, cytape.value_and_grad, cytape.jacfwd, cytape.hessian])
def test_a_list_is_no_array(g, transform):
    with pytest.raises(Exception) as caught:  # noqa: PT011  (whatever Python makes of it)
        transform(g)([0.1, 0.2])
    assert any("argument 0 of" in note and "is a list of 2 numbers" in note
               for note in caught.value.__notes__)
    assert cytape.grad(lambda x: x[0] * x[1])([0.1, 0.2]) == [0.2, 0.1]


@each("numbers, words", [
    ([[1.0, 2.0], [3.0, 4.0]], "a list of 4 numbers"), ((1.0, 2.0), "a tuple of 2 numbers")])
def test_nor_are_nested_lists_and_tuples_which_is_said_once(numbers, words):
    for transform in cytape.grad, cytape.hessian:
        with pytest.raises(cytape.errors.DetachedError) as caught:
            transform(lambda x: np.sum(x))(numbers)
        assert [words in note for note in caught.value.__notes__] == [True]
