"""The model of a graph and its gradient: bytes, times and readers of values."""

from math import inf

import numpy as np
import pytest

import cytape
from cytape.graph import checkpoint
from cytape.graph.checkpoint.gradient_model import (
    PRODUCTS_PER_SECOND,
    GradientModel,
    peak_of_run,
)
from cytape.graph.checkpoint.recompute_schedule import plain
from cytape.graph.checkpoint.schedule_curve import Planner
from cytape.graph.model.subgraph import Subgraph
from cytape.graph.run.executable import Executable
from cytape.graph.sessions.run_trace import RunTrace
from tests.cases import each, sampled
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


@each("product", [np.convolve, np.correlate])
@each("mode, n_products", [("full", 3000 * 5000), ("valid", 3000 * 2001)])
def test_the_time_of_a_convolution_is_that_of_its_products(product, mode, n_products):
    with cytape.Graph().as_default():
        x = cytape.Variable(np.ones(3000))
        y = np.tanh(product(cytape.identity(x), np.ones(5000), mode=mode))
    model = model_of(y, [x])
    [node] = [node for node in model.values if y.graph.ops[node].name in ("Convolve", "Correlate")]
    assert model.seconds_of(node) == pytest.approx(n_products / PRODUCTS_PER_SECOND, rel=0.05)


@each("view, is_counted", [
    (cytape.identity, False), (cytape.stop_gradient, False), (np.transpose, False),
    (lambda x: np.reshape(x, (4, 50)), False), (lambda x: np.expand_dims(x, 0), False),
    (np.squeeze, False), (np.atleast_3d, False), (np.flip, True), (np.diagonal, True),
    (lambda x: np.swapaxes(x, 0, 1), True), (lambda x: np.broadcast_to(x, (2, 20, 10)), True),
    (lambda x: cytape.identity_n(x)[0], True)])
def test_other_views_than_reshaped_and_transposed_arrays_count_as_arrays(view, is_counted):
    with cytape.Graph().as_default():
        x = cytape.Variable(np.ones((20, 10)))
        shown = view(np.exp(x))  # read at the end
        h = cytape.identity(x)
        y = np.sum(np.tanh(np.tanh(h))) * np.sum(shown)
    assert model_of(y, [h]).program.around == [is_counted and shown.spec.nbytes] * 2


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


@each("make", [lambda: (chain(30)[-1], None), lambda: mlp(6)[:2]])
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


@each("program, shape, extent", [
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


def test_living_values_are_counted_without_a_plan():
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


def tanhs(x, n=12):
    made = [x]
    for _ in range(n):
        made.append(np.tanh(made[-1]))
    return made


def products(x):
    h, made = np.reshape(x, (-1, 20)), []
    for _ in range(8):
        h = np.tanh(h @ W)
        made.append(np.sum(h * h))
    return made


def loops(x):
    h = x
    for _ in range(3):
        _, h = cytape.while_loop(
            lambda i, _: i < 5, lambda i, h: (i + 1, np.tanh(h) * 1.1),
            (cytape.constant(0), np.tanh(h)))
        h = np.sin(h)
    return np.sum(h * h)


def scans(x):
    h = np.reshape(x, (-1, 20))
    for _ in range(3):
        h = np.sin(np.tanh(h)) + np.sum(cytape.scan(lambda c, e: np.tanh(c + e), h[:50], h[0]))
    return np.sum(h * h)


def branches(x):
    h = x
    for _ in range(5):
        h = np.tanh(h)
        h = cytape.cond(np.sum(h) > 0, lambda h=h: np.tanh(h) * 2.0, lambda h=h: np.sin(h) * h)
    return np.sum(h * h)


def views(x):
    h = np.reshape(x, (-1, 20))
    for _ in range(5):
        h = np.reshape(np.transpose(np.tanh(h))[:, ::-1] * 1.5, (-1, 20))
        h = np.concatenate([h[:, :7], h[:, 7:]], axis=1)
    return np.sum(h * h)


def writes(x):
    h = x * 1.0
    for _ in range(5):
        h = np.tanh(h)
        h[::2] = np.sin(h[1::2])
        h[:5] *= 2.0
    return np.sum(h * h)


def calls_by(wrap):
    def calls(x):
        f = wrap(lambda a: np.sin(np.tanh(np.sin(np.tanh(a)))) * a)
        for _ in range(5):
            x = f(x)
        return np.sum(x * x)

    return calls


W = cytape.Variable(np.random.RandomState(0).standard_normal((20, 20)) / 5)
PROGRAMS = {
    "chain": lambda x: tanhs(x)[-1], "many ys": lambda x: tanhs(x)[1:],
    "many sums": lambda x: [np.sum(h * h) for h in tanhs(x)[3:]],
    "one product": lambda x: products(x)[-1], "many products": products,
    "loops": loops, "scans": scans, "branches": branches, "views": views, "writes": writes,
    "calls": calls_by(cytape.function), "recomputed calls": calls_by(cytape.recompute_grad),
    "checkpointed calls": calls_by(lambda f: cytape.function(f, checkpoints="memory"))}


@pytest.mark.parametrize("checkpoints", [None, "auto", "memory"])
@pytest.mark.parametrize("size", table([20_000], [2000, 600_000]))
@pytest.mark.parametrize("program", PROGRAMS)
def test_peaks_of_runs_are_as_predicted(program, size, checkpoints):
    with cytape.Graph().as_default() as graph:
        x = cytape.Variable(np.linspace(0.1, 1.0, size))
        ys = PROGRAMS[program](cytape.identity(x))
        plan = checkpoint.plan(ys, x, checkpoints=checkpoints or "auto")
        found = cytape.gradients(ys, x, checkpoints=checkpoints and plan)
    peak = max(trace.peak_bytes for trace in traces_of_runs(graph, found)[1])
    assert peak == pytest.approx(
        plan.peak_bytes if checkpoints else plan.plain_peak_bytes, rel=0.001)


@sampled(3, checkpoints=[None, "auto", "memory"], program=PROGRAMS)
def test_peaks_in_functions_are_as_predicted(program, checkpoints):
    plans = []

    def gradient(x):
        ys = PROGRAMS[program](x * 1.0)
        plans.append(checkpoint.plan(ys, x, checkpoints=checkpoints or "auto"))
        return cytape.gradients(ys, x, checkpoints=checkpoints and plans[-1])

    trace = cytape.function(gradient).get_concrete_function(np.linspace(0.1, 1.0, 20_000))
    measured = RunTrace()
    executable = Executable(Subgraph(
        trace.graph, trace.input_symbols, trace.output_symbols, tuple(trace.graph.stateful)))
    peak = 0
    for _ in range(2):
        executable.run([np.linspace(0.1, 1.0, 20_000), *trace.captured_inputs], measured)
        peak = max(peak, measured.peak_bytes)
    assert peak == pytest.approx(
        plans[-1].peak_bytes if checkpoints else plans[-1].plain_peak_bytes, rel=0.05)
