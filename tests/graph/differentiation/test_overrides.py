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


def looped(f):
    def loop(x):
        zero = cytape.constant(0)
        return cytape.while_loop(lambda i, y: i < 1, lambda i, y: (i + 1, f(y)), (zero, x))[1]

    return loop


@pytest.mark.parametrize("inside", [
    looped, lambda f: lambda x: cytape.cond(x[0] > 0, lambda: f(x), lambda: x),
    lambda f: lambda x: cytape.map_fn(f, x),
    lambda f: lambda x: cytape.scan(lambda _, y: f(y), x, x[0]),
    lambda f: lambda x: cytape.cond(x[0] > 0, lambda: looped(f)(x), lambda: x),
], ids=["while_loop", "cond", "map_fn", "scan", "a loop in a branch"])
@pytest.mark.parametrize("traced", [False, True])
def test_what_is_built_in_bodies_has_them_too(inside, traced):
    def f(x):
        graph = cytape.get_default_graph()
        with graph.gradient_override_map({"Exp": "DeclaredTimesTen"}):
            y = inside(cnp.exp)(x)
        [gradient] = cytape.gradients(y * 2.0, x)
        [plain] = cytape.gradients(inside(cnp.exp)(x), x)
        return gradient, plain

    if traced:
        gradient, plain = cytape.function(f)(X)
    else:
        graph = cytape.Graph()
        with graph.as_default():
            x = graph.placeholder("float64", (2,))
            fetches = f(x)
        gradient, plain = cytape.Session(graph).run(fetches, {x: X})
    np.testing.assert_allclose(gradient, 20.0 * X)
    np.testing.assert_allclose(plain, np.exp(X))
