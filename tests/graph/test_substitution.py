"""Custom gradients in traces that are built once more: in other functions, branches and loops."""

import gc
import weakref

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from cytape.graph.substitution import Substitution, substitute


@cytape.custom_gradient
def square(x):
    return x * x, lambda g: g * 2.0 * x


with_own_gradient = cytape.function(lambda x: x * x, grad_func=lambda x, g: g * 2.0 * x)
recomputed = cytape.recompute_grad(lambda x: x * x)


def in_a_function(f, x):
    return cytape.function(f)(x * 1.0)


def in_functions(f, x):
    inner = cytape.function(f)
    return cytape.function(lambda x: inner(x * 1.0))(x * 1.0)


def in_a_branch(f, x):
    y = x * 1.0
    return cytape.cond(y > 0, lambda: f(y * 1.0), lambda: y)


def in_a_loop(f, x):
    return cytape.while_loop(lambda v: v < 5, lambda v: f(v * 1.0), x)


def in_a_loop_with_draws(f, x):
    def body(v):
        return f(v) + 0.0 * cnp.random.uniform()

    return cytape.while_loop(lambda v: v < 5, body, x)


@pytest.mark.parametrize(
    "around", [in_a_function, in_functions, in_a_branch, in_a_loop, in_a_loop_with_draws])
@pytest.mark.parametrize("f", [square, with_own_gradient, recomputed])
def test_custom_gradients_are_right_wherever_they_are_built(f, around):
    traced = cytape.function(lambda x: around(f, x))
    x = cytape.constant(3.0)
    assert float(traced(x)) == 9.0
    assert float(cytape.grad(traced)(x)) == 6.0
    assert float(cytape.grad(cytape.grad(traced))(x)) == 2.0


def test_two_calls_have_substitutes_of_their_own():
    inner = cytape.function(square)
    outer = cytape.function(lambda x: inner(inner(x)))
    x = cytape.constant(3.0)
    assert float(cytape.grad(outer)(x)) == 108.0  # of x**4
    graph = cytape.Graph()
    with graph.as_default():
        x = graph.placeholder("float64", ())
        [dx] = cytape.gradients(inner(inner(x)), x)
    assert cytape.Session(graph).run(dx, {x: 3.0}) == 108.0


def test_a_tensor_stands_for_itself_but_while_a_rule_runs():
    source, graph = cytape.Graph(), cytape.Graph()
    x, other = source.placeholder("float64", ()), source.placeholder("float64", ())
    y = graph.placeholder("float64", ())
    substitution = Substitution(source, graph, {source.symbol_of(x): y})
    seen = []
    attrs = substitution.wrapped({
        "backward": lambda g: seen.extend([substitute(x), substitute(other)]), "jvp": None, "n": 2})
    attrs["backward"](1.0)
    assert (seen[0].id, seen[1].id) == (y.id, other.id)
    assert substitute(x) is x
    assert (attrs["jvp"], attrs["n"]) == (None, 2)


def test_substitutes_may_be_of_several_graphs():
    graphs = [cytape.Graph() for _ in range(3)]
    x, y, z = (graph.placeholder("float64", ()) for graph in graphs)
    inner = Substitution(graphs[0], graphs[1], {0: y})
    outer = Substitution(graphs[1], graphs[2], {0: z})
    rule = outer.wrapped(inner.wrapped({"backward": lambda: substitute(x)}))["backward"]
    assert rule().id == z.id


def test_a_substitution_does_not_keep_its_graph():
    graph = cytape.Graph()
    alive = weakref.ref(graph)
    source = cytape.Graph()
    source.placeholder("float64", ())
    substitution = Substitution(source, graph, {0: graph.placeholder("float64", ())})
    del graph
    gc.collect()
    assert alive() is None
    eager = cytape.constant(np.ones(2))
    assert substitution.find(eager) is eager
