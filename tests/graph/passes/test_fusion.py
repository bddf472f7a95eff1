"""Fused ops: where they stand in a graph, what they wait for, and that nothing else changes."""

import numpy as np
import pytest
from hypothesis import given, settings

import cytape
import cytape.numpy as cnp
from cytape.graph import Graph
from cytape.graph.model.subgraph import Subgraph
from cytape.graph.passes.fusion import fused
from cytape.graph.run.interpreter import run
from cytape.ops.engine.op_kinds import nondifferentiable
from tests.cases import each
from tests.graph.passes.graphs import (
    GraphWithControls,
    check_same,
    fused_groups,
    names,
    programs,
    results,
    subgraph_of,
    with_gradients,
)

X = np.linspace(-1, 1, 70)
LOG = []


def _note(x, what):
    LOG.append(what)
    return x


note = nondifferentiable("DeclaredFusionNote", _note, shape_rule=lambda x, what: x)
note.stateful = True


def test_a_broadcast_scalar_that_is_fetched_is_made():
    def function(x, a):
        wide = cnp.broadcast_to(a, x.shape)
        return [cnp.sin(x) * wide, wide]

    assert fused_groups(function, X, np.array(0.5)) == ({"BroadcastTo": 1}, [2])


def test_values_and_gradients_are_one_pass_over_memory():
    def function(x):
        y = cnp.exp(-x * x) * cnp.sin(x) + cnp.log(1 + x * x)
        return cnp.sum(y * y)

    found, sizes = fused_groups(with_gradients(function), X, rtol=1e-13)
    assert found == {}
    assert len(sizes) == 1


def test_equal_groups_share_their_op():
    def function(x):
        for _ in range(3):
            x = cnp.flip(cnp.exp(-x) * x)
        return x

    after = fused(subgraph_of(function, X), 65)
    assert len({id(op) for op in after.graph.ops if op.name == "Fused"}) == 1
    assert names(after) == {"Fused": 3, "Flip": 3}


def test_kept_nodes_and_ends_of_control_edges_are_not_fused():
    graph = GraphWithControls()
    with graph.as_default():
        x = graph.placeholder(float, (70,))
        a = cnp.sin(x)
        before = graph.after(a)
        b = cnp.exp(x)
        graph.enter_context(before)
        c = cnp.cos(x)
        d = cnp.tanh(x * c) + b
    symbols = [graph.symbol_of(t) for t in (x, c, d)]
    subgraph = Subgraph(graph, (symbols[0],), (symbols[2],), (graph.node_of(symbols[1]),))
    after = fused(subgraph, 65)
    assert names(after) == {"Sin": 1, "Exp": 1, "Cos": 1, "Fused": 1}
    check_same(subgraph, after, [X])
    node = next(i for i, op in enumerate(after.graph.ops) if op.name == "Exp")
    assert [after.graph.ops[n].name for n in after.graph.control_inputs_of(node)] == ["Sin"]


def test_stateful_ops_stay_in_their_order():
    def function(x):
        a = note(cnp.exp(-x), what=0)
        b = note(x, what=1)
        c = note(cnp.sin(a) + b, what=2)
        return [cnp.exp(cnp.tanh(c)), cnp.exp(cnp.sin(b))]

    before = subgraph_of(function, X)
    after = fused(before, 65)
    assert names(after)["DeclaredFusionNote"] == 3
    LOG.clear()
    results(after, [X])
    assert LOG == [0, 1, 2]
    check_same(before, after, [X])


def test_a_group_that_is_needed_early_does_not_bring_stateful_ops_forward():
    def function(x):
        first = cnp.exp(x)
        early = cnp.flip(first)
        a, b = note(x, what="a"), note(x, what="b")
        return [early, cnp.sin(b) * first, a]

    before = subgraph_of(function, X)
    after = fused(before, 65)
    assert names(after) == {"Fused": 1, "Flip": 1, "DeclaredFusionNote": 2}
    LOG.clear()
    results(after, [X])
    assert LOG == ["a", "b"]
    check_same(before, after, [X])


def test_the_order_of_stateful_ops_keeps_groups_apart():
    def function(x):
        first = cnp.exp(-x)
        a, b = note(first, what="a"), note(x, what="b")
        return [cnp.sin(b) * first, a]

    before = subgraph_of(function, X)
    after = fused(before, 65)
    assert names(after) == {"Fused": 2, "DeclaredFusionNote": 2}
    LOG.clear()
    results(after, [X])
    assert LOG == ["a", "b"]
    check_same(before, after, [X])


def waiting(build):
    """A graph of what `build` makes of x and a function that builds what waits for a tensor."""
    graph = GraphWithControls()

    def after(tensor, function, x):
        before = graph.after(tensor)
        result = function(x)
        graph.enter_context(before)
        return result

    subgraph = subgraph_of(lambda x: build(x, after), X, graph=graph)
    rewritten = fused(subgraph, 65)
    check_same(subgraph, rewritten, [X])
    node = next(i for i, op in enumerate(rewritten.graph.ops) if op.name == "Cos")
    assert [rewritten.graph.ops[n].name for n in rewritten.graph.control_inputs_of(node)] == [
        "Flip"
    ]
    return names(rewritten)


def test_a_group_that_is_needed_early_is_after_what_it_waits_for():
    def build(x, after):
        first = cnp.exp(x)
        early = cnp.roll(first, 1)
        late = after(cnp.flip(x), cnp.cos, x)
        return [early, late * first]

    assert waiting(build) == {"Fused": 1, "Roll": 1, "Flip": 1, "Cos": 1}


def test_control_inputs_keep_groups_apart():
    def build(x, after):
        first = cnp.exp(-x)
        late = after(cnp.flip(first), cnp.cos, x)
        return cnp.tanh(late * first)

    assert waiting(build) == {"Fused": 2, "Flip": 1, "Cos": 1}


def test_fed_values_are_not_computed():
    graph = Graph()
    with graph.as_default():
        x = graph.placeholder(float, (70,))
        y = cnp.exp(x)
        z = cnp.sin(cnp.tanh(y) * y)
    subgraph = Subgraph(graph, (graph.symbol_of(y),), (graph.symbol_of(z), graph.symbol_of(y)))
    after = fused(subgraph, 65)
    assert [len(op.calls) for op in after.graph.ops if op.name == "Fused"] == [3]
    check_same(subgraph, after, [X])


def test_warnings_are_those_of_the_single_ops():
    before = subgraph_of(lambda x: cnp.log(-cnp.square(x)), np.zeros(70))
    after = fused(before, 65)
    for subgraph in (before, after):
        with pytest.warns(RuntimeWarning, match="divide by zero encountered in log"):
            run(subgraph.graph, subgraph.fetches, {subgraph.feeds[0]: np.zeros(70)})


def test_a_fused_op_is_where_its_first_op_was():
    before = subgraph_of(lambda x: cnp.exp(-x), X)
    after = fused(before, 65)
    node = after.graph.node_of(after.fetches[0])
    assert after.graph.location_of(node)[0] == __file__


@settings(max_examples=60, deadline=None)
@given(programs())
def test_random_programs_compute_the_same(program):
    function, arrays = program
    rtol = 1e-12 if arrays[0].dtype == np.float64 else 1e-4
    before = subgraph_of(function, *arrays)
    for least in (1, 65):
        after = fused(before, least)
        check_same(before, after, arrays, rtol, any_condition=True)
        check_same(before, fused(after, least), arrays, rtol, any_condition=True)


@each("n", [5000, 1 << 20])
def test_a_mask_is_in_the_loop_that_reads_it(n):
    graph = Graph()
    with graph.as_default():
        x, y = cytape.placeholder(float, (n,)), cytape.placeholder(float, (n,))
        chosen = cnp.cumsum(y)
        z = cnp.where(x > 0.0, chosen, x * 2.0)
    of = Subgraph(graph, (graph.symbol_of(x), graph.symbol_of(y)), (graph.symbol_of(z),))
    names = [op.name for op in fused(of).graph.ops]
    assert "Greater" not in names
    assert names.count("Fused") == 1
