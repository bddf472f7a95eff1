"""Functions whose calls keep what does for a budget of memory."""

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from cytape.errors import MemoryBudgetError
from cytape.graph.checkpoint import gradients, plan
from cytape.graph.checkpoint.call_budget import symbols_within
from cytape.graph.model.subgraph import Subgraph
from cytape.graph.passes import optimise
from cytape.graph.run.plan import Plan
from cytape.graph.tracing.trace_derivatives import Ends
from tests import ways
from tests.cases import each, sampled
from tests.graph.checkpoint.chains import traces_of_runs

WIDTH, N_LAYERS = 32, 36
W = cytape.Variable(np.random.RandomState(0).standard_normal((WIDTH, WIDTH)) / WIDTH**0.5)
X = np.random.RandomState(1).standard_normal((160, WIDTH))
BUDGETS = [1.0, 0.9, 0.8, 0.7, 0.6, 0.55, 0.5, 0.45, 0.42, 0.41]


def layers(h, n):
    for _ in range(n):
        h = cnp.tanh(h @ W)
    return h


def network(x):
    h = layers(x, N_LAYERS)
    return cnp.sum(h * h)


def gradient(f):
    x = cytape.constant(X)
    tape, y = ways.taped(f, x)
    return [each.numpy() for each in tape.gradient(y, [x, W])]


def measured(f):
    """Return the bytes at the peak of a call, and of what it keeps with its backward pass."""
    trace = f.get_concrete_function(X)
    [derivatives] = trace.derivatives.values()
    [backward] = derivatives.traces()
    graph = trace.graph
    kept = sum(graph.spec_of(symbol).nbytes for symbol in derivatives.saved)
    parts = [
        Subgraph(backward.graph, backward.input_symbols, backward.output_symbols, ()),
        Subgraph(graph, trace.input_symbols, (*trace.output_symbols, *derivatives.saved), ())]
    backwards, forwards = (Plan(optimise(part)).peak_bytes for part in parts)
    return max(forwards, kept + backwards)


def test_less_is_taken_the_less_there_may_be():
    plain = cytape.function(network)
    wanted = gradient(plain)
    most = measured(plain)
    peaks = []
    for budget in BUDGETS:
        f = cytape.function(network, checkpoints="auto", memory_budget=budget)
        assert all(np.array_equal(a, b) for a, b in zip(gradient(f), wanted, strict=True))
        peaks.append(measured(f))
        assert peaks[-1] <= budget * most
    assert peaks[0] == most and peaks == sorted(peaks, reverse=True) and len(set(peaks)) > 3


def test_bytes_and_what_is_too_little():
    plain = cytape.function(network)
    gradient(plain)
    n_bytes = measured(plain) // 2
    f = cytape.function(network, checkpoints="auto", memory_budget=n_bytes)
    gradient(f)
    assert measured(f) <= n_bytes
    with pytest.raises(
            MemoryBudgetError, match="memory_budget=1000 bytes is too small for network") as caught:
        gradient(cytape.function(network, checkpoints="auto", memory_budget=1000))
    smallest = caught.value.smallest_bytes
    f = cytape.function(network, checkpoints="auto", memory_budget=smallest)
    gradient(f)
    assert measured(f) == smallest


def test_without_a_budget_it_takes_about_the_square_root():
    f, plain = cytape.function(network, checkpoints="auto"), cytape.function(network)
    assert all(np.array_equal(a, b) for a, b in zip(gradient(f), gradient(plain), strict=True))
    assert measured(f) <= 0.45 * measured(plain)


@each("around", [lambda f: f, lambda f: cytape.function(lambda x: f(x) * 1.0)])
def test_in_graphs_and_traces_calls_keep_the_same(around):
    peaks = []
    for options in ({}, {"checkpoints": "auto", "memory_budget": 0.45}):
        with cytape.Graph().as_default() as graph:
            x = cytape.placeholder("float64", X.shape)
            found = cytape.gradients(around(cytape.function(network, **options))(x), [x, W])
        _, traces = traces_of_runs(graph, found, {x: X})
        peaks.append(max(trace.peak_bytes for trace in traces))
    assert peaks[1] <= 0.5 * peaks[0]


def in_parts(wrap, n_parts=6):
    part = wrap(lambda h: layers(h, N_LAYERS // n_parts))

    def whole(x):
        h = x
        for _ in range(n_parts):
            h = part(h)
        return cnp.sum(h * h)

    return whole


def nested(f):
    inner = cytape.function(f)
    return cytape.function(lambda h: inner(h))


@sampled(2, wrap=[cytape.function, nested], budget=[None, 0.6])
def test_it_goes_into_functions_that_are_called(wrap, budget):
    options = {"checkpoints": "auto", "memory_budget": budget}
    flat, f = cytape.function(network, **options), cytape.function(in_parts(wrap), **options)
    assert all(np.array_equal(a, b) for a, b in zip(gradient(f), gradient(flat), strict=True))
    assert measured(f) == measured(flat)
    assert [value[:3] for value in cytape.saved_values(f, X)] == [
        value[:3] for value in cytape.saved_values(flat, X)]


@each("own", ["auto", "memory"])
def test_functions_inside_with_checkpoints_of_their_own_stay_calls(own):
    """Each sums up its gradients of W before they meet, with checkpoints around it or without."""
    def inner(f):
        return cytape.function(f, checkpoints=own)

    without, f = (cytape.function(in_parts(inner), checkpoints=around) for around in (None, "auto"))
    found = gradient(f)
    assert all(np.array_equal(a, b) for a, b in zip(found, gradient(without), strict=True))
    np.testing.assert_allclose(found[1], gradient(network)[1], rtol=1e-9)
    assert cytape.saved_values(f, X).nbytes < cytape.saved_values(without, X).nbytes


def test_too_little_in_a_graph_is_an_error_for_who_asks_for_a_derivative():
    f = cytape.function(network, checkpoints="auto", memory_budget=1000)
    with cytape.Graph().as_default():
        x = cytape.placeholder("float64", X.shape)
        y = f(x)
        for _ in range(2):
            with pytest.raises(MemoryBudgetError) as caught:
                cytape.gradients(y, x)
            assert caught.value.smallest_bytes > 1000


def test_unknown_extents_and_tangents():
    f = cytape.function(
        network, checkpoints="auto", memory_budget=0.6,
        input_signature=[cytape.Spec.of((None, WIDTH), float)])
    plain = cytape.function(network)
    for n in (3, 100):
        x, t = cytape.constant(X[:n]), cytape.constant(X[:n] * 0.1)
        np.testing.assert_allclose(
            cytape.jvp(f, (x,), (t,))[1], cytape.jvp(plain, (x,), (t,))[1], rtol=1e-12)
        np.testing.assert_allclose(cytape.grad(f)(x), cytape.grad(plain)(x), rtol=1e-12)


def test_calls_without_derivative_keep_nothing():
    trace = cytape.function(lambda x: cnp.floor(x) > 1.0).get_concrete_function(X)
    ends = Ends(trace.name, trace.graph, trace.input_symbols, trace.output_symbols)
    assert symbols_within(ends, None, True, 1024) == frozenset()


@each("options, error, said", [
    ({"checkpoints": "auto", "memory_budget": "much"}, TypeError, "got 'much'"),
    ({"checkpoints": "auto", "memory_budget": 1.5}, ValueError, "at most 1; got 1.5"),
    ({"checkpoints": "auto", "memory_budget": 0}, ValueError, "positive"),
    ({"checkpoints": "memory", "memory_budget": 0.5}, ValueError, "needs checkpoints='auto'"),
    ({"memory_budget": 0.5}, ValueError, "needs checkpoints='auto'")])
def test_an_invalid_budget_is_refused_at_once(options, error, said):
    with pytest.raises(error, match=said):
        cytape.function(network, **options)


def test_small_values_are_kept_by_their_bottlenecks():
    weights = np.random.default_rng(0).normal(size=(12, 20, 20))

    def net(x):
        for w in weights:
            x = cnp.tanh(x @ w)
        return cnp.sum(x)

    x = np.ones((30, 20))
    kept = cytape.function(net, checkpoints="auto", memory_budget=0.6)
    np.testing.assert_array_equal(cytape.grad(kept)(x), cytape.grad(cytape.function(net))(x))
    with pytest.raises(MemoryBudgetError, match=r"the smallest peak found is \d+, and"):
        cytape.grad(cytape.function(net, checkpoints="auto", memory_budget=10))(x)


@each("function, shapes", [
    (lambda x: cnp.sum(cnp.sin(cnp.exp(x)) * cnp.arange(10.0)), [(10,)]),
    (lambda x, y: cnp.sum(cnp.sin(cnp.exp(x @ y)) * cnp.ones((3, 5))), [(3, 4), (4, 5)]),
    (lambda x: cnp.sum(cnp.exp(cnp.reshape(cnp.sin(x), (6, 7))) ** 2), [(3, 14)]),
])  # fmt: skip
def test_extents_that_others_tell(function, shapes):
    arrays = [np.linspace(0.0, 1.0, int(np.prod(shape))).reshape(shape) for shape in shapes]
    wanted = cytape.grad(function)(*arrays)
    signature = [cytape.Spec.of((None,) * len(shape), "float64") for shape in shapes]
    for options in ({"input_signature": signature}, {"reduce_retracing": True}):
        f = cytape.function(function, checkpoints="auto", **options)
        np.testing.assert_allclose(cytape.grad(f)(*arrays), wanted)
    with cytape.Graph().as_default():
        xs = [cytape.placeholder("float64", (None,) * len(shape)) for shape in shapes]
        y = function(*xs)
        assert plan(y, xs).peak_bytes > 0
        found = gradients(y, xs, checkpoints="auto")
    with cytape.Session(graph=y.graph) as session:
        np.testing.assert_allclose(
            session.run(found, dict(zip(xs, arrays, strict=True)))[0], wanted)


def tanhs(x):
    for _ in range(64):
        x = cnp.tanh(x)
    return cnp.sum(x)


FUSED = [
    *(lambda kind=kind: cytape.function(tanhs, checkpoints=kind) for kind in ("memory", "auto")),
    lambda: cytape.recompute_grad(tanhs), lambda: cytape.checkpoint(policy="nothing")(tanhs)]


@sampled(2, wrapped=FUSED, around=[lambda f: f, lambda f: cytape.function(lambda x: f(x) * 1.0)])
def test_calls_compute_nothing_again_where_one_plan_fuses_all(wrapped, around):
    x, results, peaks = np.linspace(-1.0, 1.0, 20_000), [], []
    for f in (tanhs, wrapped()):
        with cytape.Graph().as_default() as graph:
            p = cytape.placeholder("float64", x.shape)
            found = cytape.gradients(around(f)(p), p)
        [values, *_], traces = traces_of_runs(graph, found, {p: x})
        results.append(values[0])
        peaks.append(max(trace.peak_bytes for trace in traces))
    assert np.array_equal(*results)
    assert peaks[1] <= peaks[0] + 64 < 5 * x.nbytes


@each("around", [lambda f: f, lambda f: cytape.function(lambda x: f(x) * 1.0)])
def test_calls_outside_of_graphs_keep_checkpoints_of_what_plans_fuse(around):
    """Their backward pass is a plan of its own, and reads what a call keeps."""
    x = cytape.constant(np.linspace(-1.0, 1.0, 20_000))
    kept, plain = (
        cytape.saved_values(around(cytape.function(tanhs, checkpoints=kind)), x).nbytes
        for kind in ("memory", None))
    assert kept < 0.2 * plain
