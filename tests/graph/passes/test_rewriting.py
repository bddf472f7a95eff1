"""Dead code: what is left out, and what has to stay."""

import numpy as np
import pytest

import cytape.numpy as cnp
from cytape.graph import Graph
from cytape.graph.model.subgraph import Subgraph
from cytape.graph.passes.rewriting import without_dead_code
from cytape.ops.engine.op_kinds import general, nondifferentiable
from tests.graph.passes.graphs import GraphWithControls, check_same, names, results, subgraph_of

LOG = []


def _note(x, what):
    LOG.append(what)
    return x


note = nondifferentiable("DeclaredNote", _note, shape_rule=lambda x, what: x)
note.stateful = True
sides = general("DeclaredSides", lambda x: (x + 1, x - 1), shape_rule=lambda x: (x, x))
X = np.linspace(-1, 1, 5)


def test_unneeded_nodes_are_left_out():
    def function(x):
        cnp.exp(cnp.sin(x))
        return cnp.cos(x)

    subgraph = subgraph_of(function, X)
    after = without_dead_code(subgraph)
    assert names(subgraph) == {"Sin": 1, "Exp": 1, "Cos": 1}
    assert names(after) == {"Cos": 1}
    check_same(subgraph, after, [X])


def test_the_source_is_not_changed():
    subgraph = subgraph_of(lambda x: cnp.sin(x) + cnp.cos(x), X)
    n_nodes, ops = subgraph.graph.n_nodes, list(subgraph.graph.ops)
    without_dead_code(subgraph)
    assert subgraph.graph.n_nodes == n_nodes
    assert subgraph.graph.ops == ops


def test_specs_locations_and_contexts_are_kept():
    subgraph = subgraph_of(cnp.sin, X)
    after = without_dead_code(subgraph)
    (fetch,), (copied,) = subgraph.fetches, after.fetches
    node, copy = subgraph.graph.node_of(fetch), after.graph.node_of(copied)
    assert after.graph.spec_of(copied) is subgraph.graph.spec_of(fetch)
    assert after.graph.location_of(copy) == subgraph.graph.location_of(node)
    assert after.graph.context_of(copy) == subgraph.graph.context_of(node)


def test_a_feed_cuts_off_what_would_compute_it():
    graph = Graph()
    with graph.as_default():
        x = graph.placeholder(float, (5,))
        y = cnp.sin(x)
        z = cnp.cos(y)
    subgraph = Subgraph(graph, (graph.symbol_of(y),), (graph.symbol_of(z), graph.symbol_of(y)))
    after = without_dead_code(subgraph)
    assert names(after) == {"Cos": 1}
    check_same(subgraph, after, [X])


def test_one_output_of_a_node_may_be_fed():
    graph = Graph()
    with graph.as_default():
        x = graph.placeholder(float, (5,))
        up, down = sides(x)
        total = up * down
    subgraph = Subgraph(
        graph, (graph.symbol_of(x), graph.symbol_of(down)),
        (graph.symbol_of(total), graph.symbol_of(down)))
    after = without_dead_code(subgraph)
    assert names(after) == {"DeclaredSides": 1, "Multiply": 1}
    check_same(subgraph, after, [X, 3 * X])
    np.testing.assert_array_equal(results(after, [X, 3 * X])[0], (X + 1) * 3 * X)


def test_nodes_with_all_outputs_fed_are_not_run():
    graph = Graph()
    with graph.as_default():
        up, down = sides(graph.placeholder(float, (5,)))
        total = up * down
    symbols = [graph.symbol_of(t) for t in (up, down, total)]
    subgraph = Subgraph(graph, (symbols[0], symbols[1]), (symbols[2],))
    assert names(without_dead_code(subgraph)) == {"Multiply": 1}


def test_fetches_may_be_feeds_constants_and_the_same():
    graph = Graph()
    with graph.as_default():
        x = graph.placeholder(float, (5,))
        y = cnp.sin(x)
        twice = y * 2.0
    symbols = [graph.symbol_of(t) for t in (x, y, twice)]
    constant = graph.inputs_of(graph.node_of(symbols[2]))[1]
    subgraph = Subgraph(
        graph, (symbols[0], symbols[0]), (symbols[0], symbols[1], constant, symbols[1]))
    after = without_dead_code(subgraph)
    assert len(after.feeds) == 2
    assert after.fetches[1] == after.fetches[3]
    check_same(subgraph, after, [X, X])


def test_feeds_that_nothing_reads_are_kept_in_their_order():
    subgraph = subgraph_of(lambda x, y, z: cnp.sin(y), X, X[:2], X[:3])
    after = without_dead_code(subgraph)
    assert [after.graph.spec_of(symbol).shape for symbol in after.feeds] == [(5,), (2,), (3,)]


def test_kept_nodes_and_stateful_ones_run_in_their_order():
    graph = Graph()
    with graph.as_default():
        x = graph.placeholder(float, (5,))
        kept = [note(cnp.sin(x), what=i) for i in range(3)]
        note(x, what="dead")
    subgraph = Subgraph(
        graph, (graph.symbol_of(x),), (graph.symbol_of(kept[1]),),
        tuple(graph.node_of(graph.symbol_of(t)) for t in (kept[2], kept[0])))
    after = without_dead_code(subgraph)
    assert names(after) == {"Sin": 3, "DeclaredNote": 3}
    assert [after.graph.attrs[node]["what"] for node in after.keep] == [2, 0]
    LOG.clear()
    results(after, [X])
    assert LOG == [0, 1, 2]


def test_control_inputs_are_needed_and_are_kept():
    graph = GraphWithControls()
    with graph.as_default():
        x = graph.placeholder(float, (5,))
        first = note(x, what="first")
        before = graph.after(first)
        y = cnp.sin(x)
        graph.enter_context(before)
    subgraph = Subgraph(graph, (graph.symbol_of(x),), (graph.symbol_of(y),))
    after = without_dead_code(subgraph)
    assert names(after) == {"DeclaredNote": 1, "Sin": 1}
    (waited_for,) = after.graph.control_inputs_of(after.graph.node_of(after.fetches[0]))
    assert after.graph.ops[waited_for] is note
    LOG.clear()
    results(after, [X])
    assert LOG == ["first"]


def test_symbols_that_do_not_exist_are_refused():
    subgraph = subgraph_of(cnp.sin, X)
    with pytest.raises(IndexError, match="no symbol"):
        without_dead_code(Subgraph(subgraph.graph, (), (99,)))
    with pytest.raises(IndexError, match="no node"):
        without_dead_code(Subgraph(subgraph.graph, (), (), (99,)))


def test_messages_call_tensors_as_the_source_does():
    graph = Graph()
    x = graph.placeholder("float64", (2,), name="x")
    ys = [np.cumsum(x) for _ in range(5)]
    z = np.cumprod(x)
    symbols = [graph.symbol_of(tensor) for tensor in (x, ys[3], z)]
    target = without_dead_code(without_dead_code(Subgraph(graph, (symbols[0],), tuple(symbols))))
    texts = [target.graph.describe(symbol) for symbol in target.fetches]
    assert texts[0] == "'x:0' (float64, shape (2,))"
    assert texts[1].startswith("'Cumsum:0' (float64, shape (2,)) or 'Cumsum_1:0'")
    assert texts[1].endswith("or 2 others")
    assert texts[2] == "'Cumprod:0' (float64, shape (2,))"
