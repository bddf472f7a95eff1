"""A loop or a branch, and its history, run as one."""

import numpy as np

import cytape
import cytape.numpy as cnp
from cytape.graph.control.cond_op import call_branch
from cytape.graph.model.subgraph import Subgraph
from cytape.graph.passes.histories import with_histories_merged
from cytape.graph.run.plan import Plan
from cytape.ops.engine.op_kinds import nondifferentiable

bent = nondifferentiable("DeclaredBent", lambda x, body, branches: x * body + branches)


def loops(graph):
    return [graph.attrs[node] for node in range(graph.n_nodes) if graph.ops[node].name == "While"]


def subgraph_of(orders):
    with cytape.Graph().as_default() as graph:
        x = graph.placeholder("float64", ())
        _, y = cytape.while_loop(
            lambda i, y: i < 4, lambda i, y: (i + 1, cnp.sin(y) * x), (cytape.constant(0), x))
        fetches = [y]
        for _ in range(orders):
            fetches += cytape.gradients(fetches[-1], [x])
    return Subgraph(graph, (graph.symbol_of(x),), tuple(map(graph.symbol_of, fetches)))


def test_one_loop_stands_for_both():
    before = subgraph_of(1)
    after = with_histories_merged(before)
    assert len(loops(before.graph)) == 3
    forward, backward = loops(after.graph)
    assert forward["condition"] is not None
    assert len(forward["body"].output_symbols) > forward["n_variables"]
    assert backward["reverse"]


def test_the_results_are_the_same():
    for orders in range(3):
        before = subgraph_of(orders)
        after = with_histories_merged(before)
        for x in (0.3, 1.7):
            expected = [float(y) for y in Plan(before).run([np.array(x)])]
            np.testing.assert_allclose(
                [float(y) for y in Plan(after).run([np.array(x)])], expected, rtol=1e-14)


def test_a_loop_stores_its_snapshots():
    with cytape.Graph().as_default() as graph:
        x = graph.placeholder("float64", ())
        _, y = cytape.while_loop(
            lambda i, y: i < 9, lambda i, y: (i + 1, cnp.sin(y) * x), (cytape.constant(0), x),
            checkpoints=3)
        gradients = [*cytape.gradients(y, [x]), *cytape.gradients(y * y, [x])]
    before = Subgraph(graph, (graph.symbol_of(x),), tuple(map(graph.symbol_of, [y, *gradients])))
    after = with_histories_merged(before)
    found = [[op.name for op in each.graph.ops] for each in (before, after)]
    assert [names.count("While") for names in found] == [1, 1]
    assert [names.count("WhileSnapshots") for names in found] == [2, 0]
    [loop] = loops(after.graph)
    assert loop["condition"] is not None
    assert loop["snapshots"][:2] == (3, None)
    for value in (0.3, 1.7):
        expected = [float(y) for y in Plan(before).run([np.array(value)])]
        np.testing.assert_allclose(
            [float(y) for y in Plan(after).run([np.array(value)])], expected, rtol=1e-14)


def test_values_without_history_are_left_unchanged():
    subgraph = subgraph_of(0)
    assert with_histories_merged(subgraph) is subgraph


def test_a_loop_whose_results_are_fed_is_not_merged():
    subgraph = subgraph_of(1)
    graph = subgraph.graph
    fed = graph.outputs_of(next(
        node for node in range(graph.n_nodes) if graph.ops[node].name == "While"))[0]
    fed_too = Subgraph(graph, (*subgraph.feeds, fed), subgraph.fetches)
    after = with_histories_merged(fed_too)
    assert len(loops(after.graph)) == 3
    for count in (2, 4):
        values = [np.array(0.7), np.array(count)]
        np.testing.assert_allclose(
            [float(y) for y in Plan(after).run(values)],
            [float(y) for y in Plan(fed_too).run(values)], rtol=1e-14)


def test_one_branch_stands_for_both():
    with cytape.Graph().as_default() as graph:
        x = graph.placeholder("float64", ())
        y = cytape.cond(x > 0, lambda: cnp.sin(cnp.exp(x)), lambda: cnp.cos(x))
        gradients = cytape.gradients(y, [x])
    before = Subgraph(graph, (graph.symbol_of(x),), tuple(map(graph.symbol_of, [y, *gradients])))
    after = with_histories_merged(before)
    n_branches = [[op.name for op in each.graph.ops].count("Cond") for each in (before, after)]
    assert n_branches == [3, 2]
    for value in (0.3, -0.3):
        expected = [float(y) for y in Plan(before).run([np.array(value)])]
        assert [float(y) for y in Plan(after).run([np.array(value)])] == expected


def test_a_branch_that_is_called_with_something_else_is_not_its_history():
    with cytape.Graph().as_default() as graph:
        x, p = graph.placeholder("float64", ()), graph.placeholder("bool", ())
        y = cytape.cond(x > 0, lambda: cnp.sin(cnp.exp(x)), lambda: cnp.cos(x))
        gradients = cytape.gradients(y, [x])
    node = next(n for n in range(graph.n_nodes)
                if any(body.history_of for body in graph.attrs[n].get("branches", ())))
    other = call_branch(p, graph.attrs[node]["branches"], [[x], [x]])
    subgraph = Subgraph(
        graph, (graph.symbol_of(x), graph.symbol_of(p)),
        tuple(map(graph.symbol_of, [y, *other])))
    assert gradients
    assert with_histories_merged(subgraph).graph.ops.count(graph.ops[node]) == 2


def test_attributes_of_other_ops_may_have_the_names_of_those_of_loops():
    with cytape.Graph().as_default() as graph:
        x = graph.placeholder("float64", ())
        y = bent(x, body=2, branches=1)
    before = Subgraph(graph, (graph.symbol_of(x),), (graph.symbol_of(y),))
    assert with_histories_merged(before) is before
    assert float(Plan(before).run([np.array(3.0)])[0]) == 7.0
