"""Plans: what they say before, and what runs measure after."""

import pickle
from xml.etree import ElementTree

import numpy as np
import pytest

import cytape
from bench.checkpoint_rows import attention_network
from cytape.errors import MemoryBudgetError
from cytape.graph import checkpoint
from tests.cases import each
from tests.graph.checkpoint.chains import chain, count, mlp, residual_chain, same, traces_of_runs
from tests.tables import table


def network(n):
    loss, weights, _ = mlp(n, width=20, batch=200)
    return loss, weights


def tanhs(n):
    a = chain(n)
    return a[-1], [a[0]]


def residual(n):
    a = residual_chain(n)
    return a[-1], [a[0]]


def branching(n):
    with cytape.Graph().as_default():
        x = cytape.Variable(np.linspace(0.1, 1.0, 3000))
        h, skip = np.sqrt(x), np.exp(-x)
        for i in range(n):
            h = np.tanh(h * skip) if i % 3 else np.exp(-h) + skip
            skip = h if i % 4 == 0 else skip
        return np.sum(h * skip), [x]


def shared_weights(n):
    rng = np.random.default_rng(0)
    with cytape.Graph().as_default():
        w = cytape.Variable(rng.normal(size=(40, 40)) / 6)
        h = cytape.constant(rng.normal(size=(300, 40)))
        for _ in range(n):
            h = np.tanh(h @ w)
        return np.sum(h), [w]


def with_dropout(n):
    rng = np.random.default_rng(0)
    with cytape.Graph().as_default():
        w = cytape.Variable(rng.normal(size=(40, 40)) / 6)
        h = cytape.constant(rng.normal(size=(300, 40)))
        for _ in range(n):
            h = cytape.nn.dropout(np.tanh(h @ w), 0.25)
        return np.sum(h), [w]


def with_rows(n):
    rng = np.random.default_rng(0)
    with cytape.Graph().as_default():
        table = cytape.Variable(rng.normal(size=(500, 50)))
        h = cytape.gather(table, np.arange(0, 400) % 50)
        for _ in range(n):
            h = np.tanh(h) * 1.5
        return np.sum(h * h), [table]


MAKES = [network, tanhs, residual, branching, shared_weights, with_dropout, with_rows]


def arrays(values):
    return [x.to_tensor().numpy() if isinstance(x, cytape.IndexedSlices) else x for x in values]


@pytest.mark.parametrize("make", MAKES)
@pytest.mark.parametrize("budget", table([0.75], [None, 0.9]))
def test_gradients_are_the_plain_ones_and_peaks_are_as_planned(make, budget):
    y, xs = make(20)
    graph = y.graph
    n_nodes = graph.n_nodes
    plan = checkpoint.plan(y, xs, memory_budget=budget)
    assert graph.n_nodes == n_nodes  # nothing is added
    with graph.as_default():
        found = checkpoint.gradients(y, xs, checkpoints="auto", memory_budget=budget)
        plain = cytape.gradients(y, xs)
    results, traces = traces_of_runs(graph, found)
    if make is not with_dropout:  # it draws anew in each run
        [expected], plain_traces = traces_of_runs(graph, plain, n_runs=1)
        assert all(same(arrays(result), arrays(expected)) for result in results)
        assert max(t.peak_bytes for t in plain_traces) <= plan.plain_peak_bytes
    measured = max(trace.peak_bytes for trace in traces)
    assert measured == pytest.approx(plan.peak_bytes, rel=0.02)
    if budget is not None:
        assert measured <= budget * plan.plain_peak_bytes
    assert plan.peak_bytes < plan.plain_peak_bytes
    n_forward = len({op.name for op in plan.recomputed_ops})
    assert 0 < n_forward <= len(plan.recomputed_ops)


def test_recomputed_nodes_are_those_of_the_plan():
    y, ws = network(16)
    plan = checkpoint.plan(y, ws, memory_budget=0.8)
    with y.graph.as_default():
        found = checkpoint.gradients(y, ws, checkpoints=plan.checkpoints)
    _, [trace, *_] = traces_of_runs(y.graph, found)
    again = [op.type for op in plan.recomputed_ops]
    assert count(trace, "Tanh") == 16 + again.count("Tanh")
    # Of the products also those whose inputs are computed again, without being computed themselves.
    assert count(trace, "MatMul") == 16 + 31 + again.count("MatMul")


def test_dropout_is_the_same_in_both_passes():
    with cytape.Graph().as_default() as graph:
        x = cytape.Variable(np.ones(4000))
        h, masks = cytape.identity(x), []
        for _ in range(8):
            masks.append(cytape.nn.dropout(np.ones_like(h), 0.5))
            h = np.tanh(h * masks[-1])
        [dx] = checkpoint.gradients(h, [x], checkpoints="auto", memory_budget=0.8)
        [plain] = cytape.gradients(h, [x])
    for _ in range(3):
        dx_value, plain_value = cytape.Session(graph).run([dx, plain])
        assert np.array_equal(dx_value, plain_value)


def test_the_peak_never_rises_as_the_budget_falls():
    y, ws = network(12)
    plain = checkpoint.plan(y, ws, memory_budget=1.0).peak_bytes
    peaks = []
    for i in range(10):
        budget = int(plain * (1 - 0.04 * i))
        with y.graph.as_default():
            found = checkpoint.gradients(y, ws, checkpoints="auto", memory_budget=budget)
        _, traces = traces_of_runs(y.graph, found)
        peaks.append(max(trace.peak_bytes for trace in traces))
        assert peaks[-1] <= budget
    assert peaks == sorted(peaks, reverse=True) and peaks[-1] < peaks[0]


def test_a_budget_is_made_use_of():
    y, ws, _ = mlp(40, width=24, batch=160)
    plain = checkpoint.plan(y, ws, memory_budget=1.0)
    seconds = []
    for budget in (0.9, 0.8, 0.7, 0.6, 0.5, 0.4):
        plan = checkpoint.plan(y, ws, memory_budget=budget)
        assert (budget - 0.05) * plain.plain_peak_bytes <= plan.peak_bytes
        seconds.append(plan.seconds)
    assert seconds == sorted(seconds)


LAYERS = [
    lambda h, w: np.tanh(h), lambda h, w: h @ w[1], lambda h, w: h * h,
    lambda h, w: np.sin(h) + h,
    lambda h, w: np.concatenate([h[:, :20], h[:, 20:]], axis=1),
    lambda h, w: np.exp(-h * h) @ w[2],
]


def test_a_smaller_budget_takes_no_less_time_and_no_more_memory():
    """Also where what is measured does not fall from one schedule to the next that is smaller."""
    rng = np.random.default_rng(0)
    with cytape.Graph().as_default():
        w = [cytape.Variable(rng.normal(size=(40, 40)) / 7) for _ in range(3)]
        h = cytape.constant(np.ones((256, 40))) @ w[0]
        for kind in "2014224252315053152120030":
            h = LAYERS[int(kind)](h, w)
        y = np.sum(h + 0.0)
    plans = [checkpoint.plan(y, w, memory_budget=budget) for budget in (0.5, 0.468, 0.456, 0.43)]
    seconds, peaks = zip(*((plan.seconds, plan.peak_bytes) for plan in plans), strict=True)
    assert list(seconds) == sorted(seconds) and list(peaks) == sorted(peaks, reverse=True)


def test_a_budget_that_cannot_be_met_says_what_can():
    y, ws = network(10)
    with pytest.raises(MemoryBudgetError, match="the smallest takes") as caught:
        checkpoint.plan(y, ws, memory_budget=1000)
    smallest = caught.value.smallest_bytes
    assert str(smallest) in str(caught.value)
    assert pickle.loads(pickle.dumps(caught.value)).smallest_bytes == smallest
    plan = checkpoint.plan(y, ws, memory_budget=smallest)
    assert plan.peak_bytes == smallest
    with pytest.raises(MemoryBudgetError):
        checkpoint.plan(y, ws, memory_budget=smallest - 1)
    n_nodes = y.graph.n_nodes
    with pytest.raises(MemoryBudgetError), y.graph.as_default():
        checkpoint.gradients(y, ws, checkpoints="auto", memory_budget=1000)
    assert y.graph.n_nodes == n_nodes


def test_the_smallest_is_the_least_that_any_budget_leads_to():
    y, ws = attention_network(4, 80, 32)
    with pytest.raises(MemoryBudgetError) as caught:
        checkpoint.plan(y, ws, memory_budget=1000)
    smallest = caught.value.smallest_bytes
    with pytest.raises(MemoryBudgetError):
        checkpoint.plan(y, ws, memory_budget=smallest - 1)
    plan = checkpoint.plan(y, ws, memory_budget=smallest)
    assert plan.peak_bytes == smallest == plan.pareto()[-1][0]


def test_checkpoints_fed_back_make_the_same_plan():
    y, ws = network(18)
    plan = checkpoint.plan(y, ws, memory_budget=0.7)
    again = checkpoint.plan(y, ws, checkpoints=plan.checkpoints)
    assert again.recomputed_ops == plan.recomputed_ops
    assert again.peak_bytes == plan.peak_bytes
    assert [x.name for x in again.checkpoints] == [x.name for x in plan.checkpoints]
    other, others = network(3)
    with pytest.raises(ValueError, match="another gradient"):
        checkpoint.plan(other, others, checkpoints=plan.checkpoints)


@each("same_graph", [True, False])
def test_checkpoints_are_not_those_of_a_like_gradient(same_graph):
    def layers(function):
        y = x
        for _ in range(8):
            y = function(y)
        return np.sum(y)

    with cytape.Graph().as_default():
        x = cytape.placeholder("float64", (50,))
        plan = checkpoint.plan(layers(np.tanh), x)
    with (x.graph if same_graph else cytape.Graph()).as_default():
        x = x if same_graph else cytape.placeholder("float64", (50,))
        other = layers(np.sin)
    with pytest.raises(ValueError, match="another gradient"):
        checkpoint.plan(other, x, checkpoints=plan.checkpoints)


def test_without_a_budget_it_takes_a_third_more_time_at_the_most():
    y, ws = network(30)
    plan = checkpoint.plan(y, ws)
    assert plan.plain_seconds < plan.seconds <= 1.33 * plan.plain_seconds
    curve = plan.pareto()
    assert curve[0] == (plan.plain_peak_bytes, plan.plain_seconds)
    assert all(b[0] < a[0] and b[1] > a[1] for a, b in zip(curve, curve[1:], strict=False))
    assert plan.peak_bytes <= min(
        peak for peak, seconds in curve if seconds <= 1.33 * plan.plain_seconds)


@each("kind", ["list", "memory", "speed"])
def test_plans_of_other_kinds_of_checkpoints(kind):
    loss, weights, layers = mlp(12, width=20, batch=200)
    checkpoints = [layers[3], layers[7]] if kind == "list" else kind
    plan = checkpoint.plan(loss, weights, checkpoints=checkpoints)
    with loss.graph.as_default():
        found = checkpoint.gradients(loss, weights, checkpoints=checkpoints)
    _, traces = traces_of_runs(loss.graph, found)
    assert plan.peak_bytes == max(trace.peak_bytes for trace in traces)
    again = [op.type for op in plan.recomputed_ops]
    assert count(traces[0], "Tanh") == 12 + again.count("Tanh")
    assert count(traces[0], "MatMul") == 12 + 23 + again.count("MatMul")
    if kind == "list":
        assert [x.name for x in plan.checkpoints] == [layers[3].name, layers[7].name]
    assert checkpoint.plan(
        loss, weights, checkpoints=plan.checkpoints).recomputed_ops == plan.recomputed_ops


def test_pictures_are_drawn():
    y, ws = network(8)
    root = ElementTree.fromstring(checkpoint.plan(y, ws).picture())
    assert sum(element.tag.endswith("path") for element in root) == 2


@each("budget, error", [
    (0, ValueError), (-5, ValueError), (1.5, ValueError), (0.0, ValueError), (True, TypeError),
    ("half", TypeError)])
def test_wrong_budgets(budget, error):
    y, ws = network(3)
    with pytest.raises(error, match="memory_budget"):
        checkpoint.plan(y, ws, memory_budget=budget)


def test_budgets_are_for_auto():
    y, ws = network(10)
    plan = checkpoint.plan(y, ws, memory_budget=0.7)
    for function in (checkpoint.plan, checkpoint.gradients):
        for checkpoints in ("speed", plan, plan.checkpoints, list(plan.checkpoints)):
            with pytest.raises(ValueError, match="needs checkpoints='auto'"):
                function(y, ws, checkpoints=checkpoints, memory_budget=10_000)


def test_unknown_extents_and_seeds():
    with cytape.Graph().as_default() as graph:
        x = cytape.placeholder("float64", (None, 30))
        h = x
        for _ in range(9):
            h = np.tanh(np.sin(h))
        g = cytape.placeholder("float64", (None, 30))
        [dx] = checkpoint.gradients(h, [x], [g], checkpoints="auto")
        [plain] = cytape.gradients(h, [x], [g])
    session = cytape.Session(graph)
    for n in (1, 7, 50):
        feed = {x: np.linspace(0, 1, 30 * n).reshape(n, 30), g: np.full((n, 30), 2.0)}
        assert same(session.run([dx], feed), session.run([plain], feed))


def test_cytape_gradients_takes_auto():
    y, ws = network(9)
    with y.graph.as_default():
        found = cytape.gradients(y, ws, checkpoints="auto")
        plain = cytape.gradients(y, ws)
    session = cytape.Session(y.graph)
    assert same(session.run(found), session.run(plain))


def test_intermediate_xs_and_several_ys():
    a = chain(14)
    with a[0].graph.as_default():
        found = checkpoint.gradients(
            [a[-1], a[9]], [a[0], a[4], a[-1]], checkpoints="auto", memory_budget=0.9)
        plain = cytape.gradients([a[-1], a[9]], [a[0], a[4], a[-1]])
    session = cytape.Session(a[0].graph)
    assert same(session.run(found), session.run(plain))


def test_in_a_function():
    def gradients(x):
        h = x
        for _ in range(12):
            h = np.tanh(h) * 1.1
        return checkpoint.gradients(np.sum(h), [x], checkpoints="auto")[0]

    x = np.linspace(-1, 1, 3000)
    expected = cytape.grad(lambda x: gradient_free(x))(x)
    np.testing.assert_allclose(cytape.function(gradients)(cytape.constant(x)), expected)


def gradient_free(x):
    for _ in range(12):
        x = np.tanh(x) * 1.1
    return np.sum(x)


def test_gradients_can_be_differentiated_again():
    with cytape.Graph().as_default() as graph:
        x = cytape.placeholder("float64", (2000,))
        h = x
        for _ in range(8):
            h = np.sin(h)
        [dx] = checkpoint.gradients(h, [x], checkpoints="auto")
        [plain] = cytape.gradients(h, [x])
        second, expected = cytape.gradients(dx, [x])[0], cytape.gradients(plain, [x])[0]
    values = cytape.Session(graph).run([second, expected], {x: np.linspace(0, 1, 2000)})
    np.testing.assert_allclose(values[0], values[1], rtol=1e-12)


def products_with_inverses(n):
    with cytape.Graph().as_default():
        x = h = cytape.placeholder("float64", (64, 32), name="x")
        ws = [cytape.Variable(np.eye(32)) for _ in range(n)]
        for w in ws:
            h = np.tanh(h @ np.linalg.inv(w))
        return np.sum(h * h), [x, *ws]


@each("kind", ["memory", "speed"])
def test_a_budget_that_simple_checkpoints_meet_is_met(kind):
    y, xs = products_with_inverses(12)
    simple = checkpoint.plan(y, xs, checkpoints=kind)
    plan = checkpoint.plan(y, xs, memory_budget=simple.peak_bytes)
    assert plan.peak_bytes <= simple.peak_bytes and plan.seconds <= simple.seconds
    with pytest.raises(MemoryBudgetError) as caught:
        checkpoint.plan(y, xs, memory_budget=1000)
    assert caught.value.smallest_bytes <= simple.peak_bytes
    assert caught.value.smallest_bytes == plan.pareto()[-1][0]
    again = checkpoint.plan(y, xs, checkpoints=plan.checkpoints)
    assert again.recomputed_ops == plan.recomputed_ops and again.peak_bytes == plan.peak_bytes
    with y.graph.as_default():
        found = checkpoint.gradients(y, xs, checkpoints="auto", memory_budget=simple.peak_bytes)
        plain = cytape.gradients(y, xs)
    feed = {xs[0]: np.linspace(-1.0, 1.0, 64 * 32).reshape(64, 32)}
    session, trace = cytape.Session(y.graph), cytape.graph.RunTrace()
    assert same(session.run(found, feed, options=trace), session.run(plain, feed))
    assert trace.peak_bytes <= simple.peak_bytes


@each("kind", ["auto", "memory"])
def test_a_plan_stands_for_its_checkpoints(kind):
    y, ws = network(14)
    plan = checkpoint.plan(y, ws, checkpoints=kind)
    assert checkpoint.plan(y, ws, checkpoints=plan).recomputed_ops == plan.recomputed_ops
    with y.graph.as_default():
        found = cytape.gradients(y, ws, checkpoints=plan)
    _, traces = traces_of_runs(y.graph, found)
    assert max(trace.peak_bytes for trace in traces) == pytest.approx(plan.peak_bytes, rel=0.02)


def test_the_module_lists_what_is_public():
    assert dir(checkpoint) == sorted(checkpoint.__all__)


@each("make", MAKES)
def test_a_plan_never_takes_more_than_the_plain_gradient(make):
    y, xs = make(4)
    plan = checkpoint.plan(y, xs)
    assert plan.peak_bytes <= plan.plain_peak_bytes


def test_gradients_take_a_budget():
    loss, weights, _ = mlp(24, batch=400)
    plain = cytape.gradients(loss, weights)
    (wanted, *_), traces = traces_of_runs(loss.graph, plain)
    found = cytape.gradients(loss, weights, checkpoints="auto", memory_budget=0.6)
    results, less = traces_of_runs(loss.graph, found)
    assert all(same(result, wanted) for result in results)
    most = max(trace.peak_bytes for trace in traces)
    assert all(trace.peak_bytes <= 0.6 * most for trace in less)
    with pytest.raises(ValueError, match="memory_budget needs checkpoints='auto'"):
        cytape.gradients(loss, weights, memory_budget=0.6)
