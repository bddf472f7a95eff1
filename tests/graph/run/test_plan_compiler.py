"""Nodes of a graph that a plan runs: feeds, fetches, kept nodes."""

import numpy as np
import pytest

from cytape.errors import GraphError
from cytape.graph.model.graph import Graph
from cytape.graph.model.subgraph import Subgraph
from cytape.graph.run.plan import Plan
from cytape.ops.adjoints.identity_groups import add_n
from cytape.ops.engine.op_kinds import general
from tests.cases import each
from tests.graph.plans import assert_as_reference, plan_of
from tests.graph.programs import new_graph


def test_a_feed_can_be_fetched_and_is_copied():
    graph, x = new_graph((3,))
    large = graph.placeholder("float64", (1000,))
    plan = plan_of(graph, [x, large], [x, x, large, x[1:], large[5:]])
    array, many = np.arange(3.0), np.arange(1000.0)
    results = plan.run([array, many])
    array[:] = many[:] = -1
    for result, expected in zip(
            results, [np.arange(3.0), np.arange(3.0), np.arange(1000.0), np.arange(1.0, 3.0),
                      np.arange(5.0, 1000.0)], strict=True):
        np.testing.assert_array_equal(result.numpy(), expected)


def test_nodes_before_a_feed_are_not_run():
    seen = []
    probe = general("DeclaredPlanProbe", lambda x: seen.append(1) or x, shape_rule=lambda x: x)
    graph, x = new_graph()
    y = probe(x)
    z = y * 2.0
    assert float(plan_of(graph, [y], [z]).run([np.array(3.0)])[0]) == 6.0
    assert seen == []
    assert float(plan_of(graph, [x], [z]).run([np.array(3.0)])[0]) == 6.0
    assert seen == [1]
    assert float(plan_of(graph, [x, y], [z], keep=[graph.node_of(graph.symbol_of(y))]).run(
        [np.array(3.0), np.array(5.0)])[0]) == 10.0
    assert seen == [1, 1]


def test_a_placeholder_that_is_not_fed_is_named():
    graph = Graph()
    x, y = graph.placeholder("float64", ()), graph.placeholder("float64", (2,))
    with pytest.raises(GraphError, match=graph.describe(graph.symbol_of(y)).split()[0]):
        plan_of(graph, [x], [x + y])
    assert float(plan_of(graph, [x], [x + 1.0]).run([np.array(1.0)])[0]) == 2.0


@each("fed", [np.ones(3), np.ones(2, np.float32), np.ones((2, 1))])
def test_feeds_must_fit(fed):
    graph, x = new_graph((2,))
    plan = plan_of(graph, [x], [x + 1.0])
    with pytest.raises(GraphError, match="expected were"):
        plan.run([fed])
    np.testing.assert_array_equal(plan.run([np.ones(2)])[0].numpy(), [2.0, 2.0])


def test_feeds_of_any_strides():
    graph, x = new_graph((40, 30))
    array = np.random.default_rng(0).normal(size=(30, 80))[:, ::2].T
    assert_as_reference(graph, [x], [np.exp(x), x.T, x[::-1, 3]], [array])


def test_a_symbol_is_fed_once():
    graph, x = new_graph()
    with pytest.raises(GraphError, match="fed twice"):
        plan_of(graph, [x, x], [x + 1.0])


def test_nothing_but_what_is_needed_is_compiled():
    graph, x = new_graph()
    y = np.sin(x)
    for _ in range(50):
        y = np.cos(y)
    assert plan_of(graph, [x], [x * 2.0]).n_instructions == 2


def test_kept_nodes_run_though_their_outputs_are_unused():
    seen = []
    op = general("DeclaredPlanKept", lambda x: seen.append(float(x)) or x, shape_rule=lambda x: x)
    graph, x = new_graph()
    kept = graph.node_of(graph.symbol_of(op(x * 2.0)))
    assert plan_of(graph, [x], [], keep=[kept]).run([np.array(3.0)]) == []
    assert seen == [6.0]


def test_control_inputs_run_first():
    seen = []
    op = general("DeclaredPlanControl", lambda x: seen.append(float(x)) or x,
                 shape_rule=lambda x: x)

    class ControlledGraph(Graph):
        def control_inputs_of(self, node):
            return [1] if node == 2 else []

    graph = ControlledGraph()
    graph.has_control_inputs = True
    x = graph.placeholder("float64", ())
    op(x)
    y = np.negative(x)
    assert float(plan_of(graph, [x], [y]).run([np.array(3.0)])[0]) == -3.0
    assert seen == [3.0]


@each("feeds, fetches, keep", [((99,), (0,), ()), ((), (-1,), ()), ((0,), (0,), (7,))])
def test_positions_are_checked(feeds, fetches, keep):
    graph = Graph()
    graph.placeholder("float64", ())
    with pytest.raises(IndexError):
        Plan(Subgraph(graph, feeds, fetches, keep))


@each("values", [[], [np.array(1.0)], [np.array(1.0)] * 3])
def test_there_is_a_value_for_each_feed(values):
    graph = Graph()
    x, y = graph.placeholder("float64", ()), graph.placeholder("float64", ())
    with pytest.raises(GraphError, match=f"2 values have to be fed, got {len(values)}"):
        plan_of(graph, [x, y], [x + y]).run(values)


# ---- fetched views of computed arrays

VIEWS = {
    "transposed": lambda z: z.T,
    "turned": lambda z: np.rot90(z, 1),
    "flipped": lambda z: np.flip(z, 1).T,
    "reshaped": lambda z: np.reshape(z, (4, -1)),
    "moved again": lambda z: np.reshape(z.T, (4, -1)),  # which takes a copy
    "a part": lambda z: z[1:].T,
}


@each("view", VIEWS.values(), ids=VIEWS)
def test_views_are_fetched_where_they_were_computed(view):
    array = np.random.default_rng(0).normal(size=(30, 40))
    graph, x = new_graph((30, 40))
    z = np.exp(x)
    for fetches in ([view(z)], [view(z), z], [z, view(z), view(z)], [view(z), view(z) + 1.0],
                    [view(x)], [view(z), np.sum(z * 2.0)]):
        plan = assert_as_reference(graph, [x], fetches, [array])
        first = plan.run([array])[0].numpy()
        expected = first.copy()
        plan.run([array + 1.0])
        np.testing.assert_array_equal(first, expected)
    plan = plan_of(graph, [x], [z.T])
    assert plan.run([array])[0].numpy().strides == (8, 320)
    assert plan.peak_bytes <= 2 * array.nbytes


def test_views_of_what_python_computes_are_fetched():
    array = np.random.default_rng(0).normal(size=(30, 40))
    graph, x = new_graph((30, 40))
    z = np.sort(x)
    for view in VIEWS.values():
        plan = assert_as_reference(graph, [x], [view(z), view(z) * 2.0, z], [array])
        assert plan.n_calls == 1
        assert_as_reference(graph, [x], [view(z)], [array])


def test_results_that_repeat_themselves_are_small():
    graph, x = new_graph((40,))
    column = np.exp(x)[:, None]
    fetches = [np.broadcast_to(column, (40, 50)), np.broadcast_to(column[::-1].T, (50, 40))]
    plan = assert_as_reference(graph, [x], fetches, [np.linspace(0, 1, 40)])
    for _ in range(2):
        column, row = plan.run([np.linspace(0, 1, 40)])
        assert column.numpy().strides == (8, 0)
        assert row.numpy().strides == (0, -8)


def test_fetches_that_are_views_of_a_value_and_copies_of_it():
    array = np.random.default_rng(0).normal(size=(30, 40))
    graph, x = new_graph((30, 40))
    z = np.exp(x)
    copied = np.reshape(z.T, (30, 40))  # the first fetch has memory of its own
    rolled = np.roll(z, 1, 0)
    fetches = copied, rolled, np.reshape(z, (40, 30)).T, z[::-1], np.broadcast_to(z, (9, 30, 40))
    for first in range(len(fetches)):
        assert_as_reference(graph, [x], [*fetches[first:], *fetches[:first]], [array])
        assert_as_reference(graph, [x], [fetches[first], fetches[first - 1]], [array])


# ---- sums that take over each other's memory, the last of which is fetched

FIRST = {
    "an exponential": np.exp,
    "flipped": lambda x: np.flip(np.exp(x), 1),
    "turned": lambda x: np.exp(x[::-1, ::-1]).T.T,
    "of Python": lambda x: np.sort(x),
    "fed": lambda x: x,
    "a column": lambda x: np.exp(x[:, :1]),
}


@each("first", FIRST.values(), ids=FIRST)
def test_sums_are_computed_where_the_last_is_fetched(first):
    array = np.random.default_rng(0).normal(size=(30, 40))
    graph, x = new_graph((30, 40))
    sums = [first(x)]
    for k in range(1, 4):
        sums.append(sums[-1] + np.flip(np.sin(x * float(k)), 0))
    last = np.sort(x, axis=0) + sums[-1]
    for fetches in ([last], [last, sums[1]], [sums[2], last], [last, last], [last, sums[3] * x],
                    [np.reshape(last, (40, 30)), sums[2].T], [last.T, last[::-1]]):
        plan = assert_as_reference(graph, [x], fetches, [array])
        result = plan.run([array])[0].numpy()
        expected = result.copy()
        plan.run([array + 1.0])
        np.testing.assert_array_equal(result, expected)


@each("method", ["add", "add_n"])
def test_a_sum_is_written_over_an_operand_beside_a_strided_one(method):
    array = np.random.default_rng(0).normal(size=(300, 40))
    graph, x = new_graph((300, 40))
    total, flipped = np.exp(x), np.flip(np.sin(x), 0)
    added = total + flipped if method == "add" else add_n([total, flipped])
    plan = assert_as_reference(graph, [x], [np.sum(added)], [array])
    assert plan.peak_bytes <= 2.1 * array.nbytes
    assert_as_reference(graph, [x], [np.sum(added), np.sum(total * 2.0)], [array])
    assert_as_reference(graph, [x], [np.sum(added), np.sum(flipped * 2.0)], [array])
    twice = total + total[::-1]  # which lies in the memory of the first
    assert_as_reference(graph, [x], [np.sum(twice, 1)], [array])
