"""NodeStore: how a graph is stored, and what tells of it."""

import gc
import sys
import weakref

import numpy as np
import pytest

import cytape.numpy as cnp
from cytape.graph import Graph
from cytape.graph.run.interpreter import run
from cytape.ops.calls.node_store import NodeStore
from cytape.ops.creation import identity_op
from cytape.ops.declare import general
from cytape.tensor.values.spec import Spec

halves = general("DeclaredHalvesOfNodes", lambda x: (x / 2, x / 2), shape_rule=lambda x: (x, x))


@pytest.fixture
def graph():
    return Graph()


def ops_of(graph):
    return [op.name for op in graph.ops]


def test_nodes_and_symbols(graph):
    x = graph.placeholder("float64", (2,))
    a, b = halves(x)
    y = a * b
    assert ops_of(graph) == ["Placeholder", "DeclaredHalvesOfNodes", "Multiply"]
    assert (graph.n_nodes, graph.n_symbols) == (3, 4)
    assert [list(graph.outputs_of(n)) for n in range(3)] == [[0], [1, 2], [3]]
    assert [graph.inputs_of(n) for n in range(3)] == [[], [0], [1, 2]]
    assert [graph.node_of(s) for s in range(4)] == [0, 1, 1, 2]
    assert graph.output_position(2) == 1 and graph.spec_of(3) is x.spec
    assert graph.symbol_of(y) == 3 and graph.tensor_at(3).id == y.id


@pytest.mark.parametrize("ask", [
    lambda g: g.inputs_of(5), lambda g: g.outputs_of(-1), lambda g: g.spec_of(9),
    lambda g: g.node_of(-1), lambda g: g.tensor_at(1), lambda g: g.context_of(1),
    lambda g: g.location_of(7), lambda g: g.add(identity_op, [3], {}, [Spec.of((), float)]),
    lambda g: g.add(identity_op, [0] * 70 + [3], {}, [Spec.of((), float)])])
def test_positions_are_checked(graph, ask):
    graph.placeholder("float64", ())
    with pytest.raises(IndexError):
        ask(graph)
    assert graph.n_nodes == 1


def test_many_nodes_and_inputs(graph):
    x = graph.placeholder("float64", ())
    y = x
    for _ in range(5000):
        y = y + x
    total = cnp.stack([y] * 100)
    assert graph.n_nodes > 5000 and total.shape == (100,)
    results = run(graph, [graph.symbol_of(total)], {graph.symbol_of(x): np.array(1.0)})
    np.testing.assert_array_equal(results[0], np.full(100, 5001.0))


def test_where_a_node_was_built(graph):
    x = graph.placeholder("float64", (2,))
    y = np.tanh(x); line = sys._getframe().f_lineno  # noqa: E702
    z = cnp.mean(y * 2.0)
    for tensor, expected in (y, line), (z, line + 1):
        file, found, name = graph.location_of(graph.node_of(graph.symbol_of(tensor)))
        assert (file, name) == (__file__, "test_where_a_node_was_built")
        assert expected <= found <= expected + 1


def test_a_graph_goes_with_its_last_tensor(graph):
    x = graph.placeholder("float64", ())
    y = np.sin(x) * 2.0
    gone = weakref.ref(graph)
    del graph, x
    gc.collect()
    assert gone() is None or y.graph is gone()
    del y
    gc.collect()


def test_a_finalized_graph(graph):
    x = graph.placeholder("float64", (3,))
    graph.finalize()
    for call in (lambda: x + 1.0, lambda: np.sin(x), lambda: x[0], lambda: x @ x):
        n_nodes = graph.n_nodes
        with pytest.raises(RuntimeError, match="finalized"):
            call()
        assert graph.n_nodes == n_nodes


def test_the_store_alone():
    store = NodeStore()
    one = Spec.of((), float)
    source = store.add(identity_op, [], {}, [one])
    node = store.add(identity_op, store.outputs_of(source), {}, [one])
    assert store.inputs_of(node) == [0] and store.control_inputs_of(node) == []
    assert "Identity:1" in store.describe(1)


def test_a_node_reads_another_symbol(graph):
    x, y = graph.placeholder("float64", ()), graph.placeholder("float64", ())
    z = x - y
    graph.set_input(2, 1, 0)
    assert graph.inputs_of(2) == [0, 0]
    assert run(graph, [graph.symbol_of(z)], {0: 3.0})[0] == 0.0
    for node, position, symbol in (3, 0, 0), (2, 2, 0), (2, -1, 0), (2, 0, 9):
        with pytest.raises(IndexError):
            graph.set_input(node, position, symbol)


def test_a_node_is_one_of_another_context(graph):
    x = graph.placeholder("float64", ())
    number = graph.context_with(device="cpu:1")
    graph.set_context(0, number)
    assert x.device == "cpu:1"
    for node, context in (0, 9), (0, -1), (1, 0):
        with pytest.raises(IndexError):
            graph.set_context(node, context)


def test_another_spec_is_that_of_what_is_built_then(graph):
    x = graph.placeholder("float64", (None,))
    y = abs(x)
    graph.set_spec(graph.symbol_of(x), Spec.of((3,), float))
    assert [spec.shape for spec in graph.inferred(1, [0], {})] == [(3,)]
    assert [spec.shape for spec in graph.inferred(1, [0], {0: Spec.of((4,), float)})] == [(4,)]
    assert (graph.tensor_at(0).shape, abs(x).shape, y.shape) == ((3,), (3,), (None,))
    unknown = Spec.of((None, 2), float)
    graph.set_spec(graph.symbol_of(y), unknown)
    assert unknown.shape.tensor().id == y.id


def test_nodes_in_another_order(graph):
    x = graph.placeholder("float64", ())
    a, b = halves(x)
    graph.no_op()
    y = a * b
    graph.reorder(1, [2, 1, 3])
    assert ops_of(graph) == ["Placeholder", "NoOp", "DeclaredHalvesOfNodes", "Multiply"]
    assert [list(graph.outputs_of(n)) for n in range(4)] == [[0], [], [1, 2], [3]]
    assert [graph.node_of(s) for s in range(4)] == [0, 2, 2, 3]
    assert y.op.node == 3
    graph.reorder(4, [])
    for first, order in (1, [1, 1]), (1, [0, 1]), (1, [2, 3]), (2, [2, 3, 4]):
        with pytest.raises(ValueError, match="expected the nodes from"):
            graph.reorder(first, order)


def test_stateful_nodes_are_known_where_they_are(graph):
    with graph.as_default():
        x = graph.placeholder("float64", ())
        first, second = cnp.random.normal(size=()), cnp.random.normal(size=())
    assert graph.stateful == [1, 2]
    graph.reorder(0, [1, 0, 2])
    assert graph.stateful == [0, 2]
    graph.truncate(2)
    assert (graph.stateful, graph.n_nodes) == ([0], 2)
    del x, first, second


def test_the_last_nodes_are_forgotten(graph):
    x = graph.placeholder("float64", (2,))
    y = x * 2.0

    def add(number):
        return x + float(number)

    before = sys.getrefcount(add.__code__)
    for number in range(100):
        add(number)
    built = sys.getrefcount(add.__code__)
    graph.truncate(3)
    after = sys.getrefcount(add.__code__)
    assert built > after == before
    assert (graph.n_nodes, graph.n_symbols, graph.n_args) == (3, 3, 2)
    assert len(graph.ops) == len(graph.attrs) == 3
    again = (x + 1.0) + (x + 2.0)  # 1.0 is made anew, 2.0 is there
    assert ops_of(graph)[3:] == ["Constant", "Add", "Add", "Add"]
    np.testing.assert_array_equal(
        run(graph, [graph.symbol_of(again), graph.symbol_of(y)], {0: np.ones(2)}),
        [[5.0, 5.0], [2.0, 2.0]])
    graph.truncate(graph.n_nodes)
    with pytest.raises(IndexError):
        graph.truncate(99)
