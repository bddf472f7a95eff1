"""gradient_override_map where tapes and accumulators differentiate, in graphs and in functions."""

import gc
import weakref

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp

X = np.array([0.5, 1.0])


@cytape.register_gradient("DeclaredTimesTen")
def times_ten(op, dy):
    return 10.0 * dy * op.inputs[0]


@cytape.register_gradient("DeclaredForTwo")
def for_two(op, dy):
    return dy, None


def tanh(x, op_type="Tanh"):
    with x.graph.gradient_override_map({op_type: "DeclaredTimesTen"}):
        return cnp.tanh(x)


def by_tape(f, x):
    with cytape.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    return tape.gradient(y, x)


def by_accumulator(f, x):
    with cytape.ForwardAccumulator(x, np.ones(2)) as accumulator:
        y = f(x)
    return accumulator.jvp(y)


def by_gradients(f, x):
    return cytape.gradients(f(x), x)[0]


WAYS = {"tape": by_tape, "accumulator": by_accumulator, "gradients": by_gradients}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_in_a_graph(way):
    with cytape.Graph().as_default() as graph:
        x = cytape.placeholder(np.float64, (2,))
        slope = way(tanh, x)
        other = way(lambda x: tanh(x, "Sin"), x)
        plain = way(cnp.tanh, x)
    found = cytape.Session(graph).run([slope, other, plain], {x: X})
    assert np.allclose(found, [10.0 * X, 1 - np.tanh(X) ** 2, 1 - np.tanh(X) ** 2])


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_in_a_traced_function(way):
    assert np.allclose(cytape.function(lambda x: way(tanh, x))(X), 10.0 * X)


@pytest.mark.parametrize("way", [by_tape, by_accumulator])
def test_of_a_traced_function(way):
    f = cytape.function(tanh)
    x = cytape.constant(X)
    assert np.allclose(way(f, x), 10.0 * X)
    assert np.allclose(way(cytape.function(lambda x: 2.0 * f(x)), x), 20.0 * X)
    assert np.allclose(cytape.function(lambda x: way(f, x))(X), 10.0 * X)


def test_the_second_order_is_that_of_the_gradient_function():
    f = cytape.function(tanh)
    first = cytape.grad(lambda x: cnp.sum(f(x)))
    assert np.allclose(cytape.jacfwd(first)(X), 10.0 * np.eye(2))
    assert np.allclose(cytape.grad(lambda x: cnp.sum(first(x)))(X), [10.0, 10.0])


@pytest.mark.parametrize("op_type, f, expected", [
    ("Multiply", lambda x: x * 3.0, [1.0, 1.0]),
    ("GetItem", lambda x: x[:1], "error"),
])
def test_ops_of_all_kinds(op_type, f, expected):
    def program(x):
        with x.graph.gradient_override_map({op_type: "DeclaredForTwo"}):
            return f(x)

    for way in WAYS.values():
        traced = cytape.function(lambda x, way=way: way(program, x))
        if expected == "error":
            with pytest.raises(ValueError, match="must return one gradient"):
                traced(X)
        else:
            assert np.array_equal(traced(X), expected)


def test_an_op_without_a_gradient_gets_one():
    def rounded(x):
        with x.graph.gradient_override_map({"Round": "DeclaredTimesTen"}):
            return cnp.round(x)

    for way in WAYS.values():
        assert np.allclose(cytape.function(lambda x, way=way: way(rounded, x))(X), 10.0 * X)


def test_nobody_keeps_the_graph():
    with cytape.Graph().as_default() as graph:
        x = cytape.placeholder(np.float64, (2,))
        with cytape.GradientTape(persistent=True) as tape:
            tape.watch(x)
            y = tanh(x)
        slope = tape.gradient(y, x)
    alive = weakref.ref(graph)
    del graph, x, y, slope, tape
    gc.collect()
    assert alive() is None
