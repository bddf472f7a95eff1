"""What is read off a graph and its gradient."""

from math import inf

import numpy as np
import pytest

import cytape
from cytape.graph.checkpoint.model import GradientModel, peak_of_run
from cytape.graph.checkpoint.planner import Planner
from cytape.graph.checkpoint.schedules import plain
from cytape.graph.model.subgraph import Subgraph
from tests.graph.checkpoint.chains import SIZE, chain, mlp, traces_of_runs
from tests.tables import table


def model_of(y, xs, grad_ys=None):
    return GradientModel(y.graph, y, xs, grad_ys, {})


def test_a_chain_of_tanhs():
    a = chain(6)
    model = model_of(a[-1], [a[0]])
    program = model.program
    graph = a[0].graph
    assert [graph.ops[node].name for node in model.values] == ["Tanh"] * 5
    assert program.sizes == [8 * SIZE] * 5
    assert program.inputs == [(), (0,), (1,), (2,), (3,)]
    assert program.reads == [(4,), (3,), (2,), (1,), (0,)]  # the gradient reads what tanh returned
    assert model.arrivals == model.values[::-1]
    assert set(model.reads.values()) == {(False, True)}
    assert all(cost > 0 for cost in program.costs) and inf not in program.costs


def test_the_gradient_stops_where_it_is_told_to():
    a = chain(6)
    model = GradientModel(a[0].graph, a[-1], [a[3]], None, {"stop_gradients": [a[3]]})
    assert [a[0].graph.ops[node].name for node in model.values] == ["Tanh"] * 2


def test_products_read_their_inputs_and_take_time():
    loss, weights, _ = mlp(3)
    model = model_of(loss, weights)
    graph = loss.graph
    names = [graph.ops[node].name for node in model.values]
    products = [i for i, name in enumerate(names) if name == "MatMul"]
    assert len(products) == 3
    assert all(model.reads[model.values[i]] == (True, False) for i in products)
    assert model.program.costs[products[0]] > model.program.costs[names.index("Tanh")]
    assert model.seconds > sum(model.program.costs) > 0
    assert "ReadVariable" not in names  # variables are in memory anyway


def test_draws_are_not_computed_again():
    with cytape.Graph().as_default():
        x = cytape.Variable(np.ones(100))
        h = cytape.nn.dropout(np.tanh(cytape.identity(x)), 0.5)
        y = np.sum(h * h)
    model = model_of(y, [x])
    ops = {y.graph.ops[node].name: cost
           for node, cost in zip(model.values, model.program.costs, strict=True)}
    assert all(cost == inf for name, cost in ops.items() if name.startswith("Random"))


def test_the_graph_stays_as_it_is():
    a = chain(4)
    graph = a[0].graph
    n_nodes, names = graph.n_nodes, [op.name for op in graph.get_operations()]
    model_of(a[-1], [a[0]])
    assert graph.n_nodes == n_nodes
    assert [op.name for op in graph.get_operations()] == names


@pytest.mark.parametrize("make", [lambda: (chain(30)[-1], None), lambda: mlp(6)[:2]])
def test_the_plain_peak_is_what_a_run_measures(make):
    y, xs = make()
    xs = [y.graph.as_graph_element("a00:0")] if xs is None else xs
    model = model_of(y, xs)
    with y.graph.as_default():
        found = cytape.gradients(y, xs)
    _, traces = traces_of_runs(y.graph, found)
    assert model.peak_bytes(plain(model.program)) == max(t.peak_bytes for t in traces)


def test_other_values_are_counted_beside():
    loss, weights, _ = mlp(4, width=32, batch=8)
    program = model_of(loss, weights).program
    # The gradients of weights are kept until the end: ever more of them.
    assert program.beside[-1] > program.beside[0]
    assert program.beside[-1] >= 3 * 8 * 32 * 32


def test_unknown_extents_count_for_some():
    with cytape.Graph().as_default():
        x = cytape.placeholder("float64", (None, 3))
        y = np.tanh(np.tanh(x))
    model = model_of(y, [x])
    assert model.program.sizes == [64 * 3 * 8] * 2
    assert model.peak_bytes(plain(model.program)) > 0


@pytest.mark.parametrize("program, shape, extent", [
    (lambda x: np.exp(np.sin(x)) * np.arange(10.0), (None,), 10),
    (lambda x: np.reshape(np.sin(np.exp(x)), (7, 1)) ** 2, (None, 1), 7),
    (lambda x: np.exp(np.sin(x)) * np.arange(10.0), (None, 10), 64),
    (lambda x: np.reshape(np.sin(np.exp(x)), ()) ** 2, (None, 1), 1),
    (lambda x: np.reshape(np.sin(np.exp(x)), (7, 3)) ** 2, (None, None), 64),
    (lambda x: np.exp(np.sin(x))[70] * 2.0, (None,), 64),
])  # fmt: skip
def test_unknown_extents_are_what_the_graph_allows(program, shape, extent):
    """There may be none: 7 and 3 are no square."""
    with cytape.Graph().as_default():
        x = cytape.placeholder("float64", shape)
        y = program(x)
    model = model_of(y, [x])
    assert model.unknown_extent == extent
    assert model.program.sizes[0] == np.prod([each or extent for each in shape]) * 8
    for point in Planner(model.program).curve():
        assert model.peak_bytes(point.schedule) >= model.program.sizes[0]


def test_what_lives_at_a_time_is_counted_without_a_plan():
    with cytape.Graph().as_default() as graph:
        x = cytape.placeholder("float64", (None, None))
        a = np.sin(x)
        b = np.exp(a)
        y = np.reshape(b, (7, 3))
    symbols = [(graph.symbol_of(each),) for each in (x, y)]
    size = 64 * 64 * 8
    assert peak_of_run(Subgraph(graph, *symbols), 64) == 2 * size
    fetches = tuple(map(graph.symbol_of, (a, b, y)))
    assert peak_of_run(Subgraph(graph, symbols[0], fetches), 64) == 2 * size + 7 * 3 * 8


def test_reads_of_variables_count():
    """They are copies, which stay until the gradient has read them."""
    loss, weights, _ = mlp(32)
    model = model_of(loss, weights)
    planner = Planner(model.program)
    for point in planner.curve():
        assert point.peak == pytest.approx(model.peak_bytes(point.schedule), rel=0.05)
    assert model.peak_bytes(planner.smallest().schedule) <= 0.65 * model.peak_bytes(
        plain(model.program))


@pytest.mark.parametrize("n", table([64], [56, 63, 72, 80, 96]))
def test_a_small_schedule_is_found_for_long_chains_of_stencils(n):
    """Also where the table for a smaller budget, which rounds otherwise, does not have it."""
    with cytape.Graph().as_default():
        x = cytape.Variable(np.ones(1 << 14))
        h, w = cytape.identity(x), [cytape.Variable(np.ones(3)) for _ in range(n)]
        for each in w:
            h = np.tanh(sum(each[i] * np.roll(h, i) for i in range(3)))
        y = np.sum(h * h)
    planner = Planner(model_of(y, [x]).program)
    assert planner.smallest().peak < 0.25 * planner.plain_peak
    assert planner.n_points > 10
