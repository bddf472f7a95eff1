"""Nodes told to tapes, accumulators and other graphs."""

import numpy as np
import pytest

import cytape
from cytape.graph import Graph
from cytape.graph.tracing.concrete_function import ConcreteFunction
from cytape.graph.tracing.replay import (
    build_again,
    inline,
    kept_by,
    symbolic_gradients,
    symbolic_tangents,
)
from cytape.tensor.recording.state import building_into


@pytest.fixture
def program():
    graph = Graph()
    x = graph.placeholder("float64", (2,), name="x")
    w = graph.placeholder("float64", (2,), name="w")
    y = np.sum(np.sin(x) * w)
    return graph, x, w, y


FED = [0.5, 2.0], [3.0, -1.0]


def test_gradients_and_tangents_of_symbols(program):
    graph, x, w, y = program
    symbols = [graph.symbol_of(t) for t in (x, w)]
    with graph.as_default():
        gradients = symbolic_gradients(graph, [graph.symbol_of(y)], symbols, [None])
        (tangent,) = symbolic_tangents(
            graph, symbols, [cytape.constant([1.0, 10.0]), None], [graph.symbol_of(y)])
    feeds = {x: FED[0], w: FED[1]}
    dx, dw, slope = cytape.Session(graph).run([*gradients, tangent], feeds)
    np.testing.assert_allclose(dx, np.cos(FED[0]) * FED[1])
    np.testing.assert_allclose(dw, np.sin(FED[0]))
    np.testing.assert_allclose(slope, dx @ [1.0, 10.0])


def test_recorders_outside_do_not_see_it(program):
    graph, x, w, y = program
    with cytape.GradientTape() as tape:
        tape.watch(x)
        with graph.as_default():
            (dx,) = symbolic_gradients(graph, [graph.symbol_of(y)], [graph.symbol_of(x)], [None])
    assert tape.gradient(dx, x) is None


def test_inlined_nodes_compute_and_assign_the_same(program):
    graph, x, w, y = program
    v = cytape.Variable(0.0)
    with graph.as_default():
        v.assign(y)
    other = Graph()
    with building_into(other):
        before = other.variable_value(v)
        symbols = {graph.symbol_of(x): other.placeholder("float64", (2,)),
                   graph.symbol_of(w): cytape.constant(FED[1])}
        fed = symbols[graph.symbol_of(x)]
        inline(graph, symbols, other)
        after = other.variable_value(v)
    assert before.ref() != after.ref()
    result = cytape.Session(other).run(symbols[graph.symbol_of(y)], {fed: FED[0]})
    assert result == np.sum(np.sin(FED[0]) * np.array(FED[1]))


def test_a_node_is_told_from_those_of_its_derivative():
    graph, other = Graph(), Graph()
    x = graph.placeholder("float64", ())
    y = np.tanh(x)
    z = other.placeholder("float64", ())
    with cytape.ForwardAccumulator(z, 1.0):
        node, [new] = build_again(graph, y.op.node, [z], other, 0)
    assert other.operation_at(node) == new.op and other.n_nodes > node + 1


def test_values_kept_by_nodes_are_counted():
    table = np.ones(1000)
    f = cytape.function(lambda x: cytape.cond(x[0] > 0, lambda: x * 2.0, lambda: x) + table)
    graph = f.get_concrete_function(table).graph
    n_bytes, bodies = kept_by(graph, ConcreteFunction)
    assert n_bytes >= table.nbytes and len(bodies) == 2
    assert all(type(body) is ConcreteFunction for body in bodies)
    assert kept_by(cytape.Graph(), ConcreteFunction) == (0, [])


def test_a_node_is_built_again():
    graph, other = Graph(), Graph()
    x = graph.placeholder("float64", (2,), name="x")
    y = np.tanh(x)
    z = other.placeholder("float64", (3,))
    node, [new] = build_again(graph, y.op.node, [z], other, 0)
    assert new.op.node == node
    assert (new.op.type, new.shape, new.op.location) == ("Tanh", (3,), y.op.location)
    graph.seed = 3
    with graph.as_default():
        draw = cytape.numpy.random.normal(size=(2,))
    node = next(op.node for op in graph.get_operations() if "stream" in op.attrs)
    _, [again] = build_again(graph, node, [], graph, 0)
    assert again.op.attrs["stream"] is not draw.graph.operation_at(node).attrs["stream"]
