"""Calls, in graphs and traces, of functions that keep checkpoints."""

import gc
import weakref

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from cytape.errors import MemoryBudgetError
from cytape.ops.python.checkpointed_call_op import checkpointed_call_op
from tests.cases import each
from tests.graph.checkpoint.chains import count, same, traces_of_runs
from tests.ways import gradient

WIDTH, N_LAYERS = 48, 49
WEIGHTS = [cytape.Variable(np.random.RandomState(i).standard_normal((WIDTH, WIDTH)) / WIDTH**0.5)
           for i in range(N_LAYERS)]
X = np.random.RandomState(99).standard_normal((WIDTH, WIDTH))
UNIT = X.nbytes


def network(x):
    h = x
    for w in WEIGHTS:
        h = cnp.tanh(h @ w)
    return cnp.sum(h * h)


def in_a_graph(f):
    with cytape.Graph().as_default() as graph:
        x = cytape.placeholder("float64", X.shape)
        found = cytape.gradients(f(x), [x])
    return traces_of_runs(graph, found, {x: X})


@each("around", [
    lambda f: f, lambda f: cytape.function(lambda x: f(x) * 1.0),
    lambda f: cytape.function(lambda x: cytape.function(f)(x))], ids=["graph", "trace", "traces"])
def test_checkpoints_are_kept_wherever_it_is_called(around):
    plain, plain_traces = in_a_graph(around(cytape.function(network)))
    found, traces = in_a_graph(around(cytape.function(network, checkpoints="memory")))
    assert all(same(one, other) for one, other in zip(found, plain, strict=True))
    assert all(trace.peak_bytes >= 2 * N_LAYERS * UNIT for trace in plain_traces)
    assert all(trace.peak_bytes <= (N_LAYERS + 2 * 7 + 4) * UNIT for trace in traces)
    # Six of the layers are kept; the path to each of the others is recomputed.
    assert {count(trace, "MatMul") for trace in traces} == {
        count(trace, "MatMul") + N_LAYERS - 6 for trace in plain_traces}


def test_with_tapes_inside_a_trace():
    peaks = []
    for checkpoints in (None, "memory"):
        f = cytape.function(network, checkpoints=checkpoints)

        @cytape.function
        def slope(x, f=f):
            return gradient(f, x)

        executable = slope.get_concrete_function(X).executable
        results = [executable.run([X, *[w.value() for w in WEIGHTS]]) for _ in range(2)]
        assert same(results[0], results[1])
        trace = cytape.graph.RunTrace()
        executable.run([X, *[w.value() for w in WEIGHTS]], trace)
        peaks.append(trace.peak_bytes)
    assert peaks[0] >= N_LAYERS * UNIT and peaks[1] <= (2 * 7 + 5) * UNIT


def test_a_run_without_derivatives_keeps_no_more_than_checkpoints():
    with cytape.Graph().as_default() as graph:
        x = cytape.placeholder("float64", X.shape)
        y = cytape.function(network, checkpoints="memory")(x)
    _, traces = traces_of_runs(graph, y, {x: X})
    assert all(trace.peak_bytes <= (N_LAYERS + 7 + 3) * UNIT for trace in traces)


def test_a_choice_of_nothing_is_an_error_for_who_asks_for_a_derivative():
    small = cytape.function(lambda x: cnp.tanh(cnp.tanh(x)), checkpoints="memory")
    with cytape.Graph().as_default() as graph:
        x = cytape.placeholder("float64", (3,))
        y = small(x)
        with pytest.raises(ValueError, match="set cytape.graph.checkpoint.MIN_CHECKPOINT"):
            cytape.gradients(y, x)
    assert np.array_equal(cytape.Session(graph).run(y, {x: np.zeros(3)}), np.zeros(3))
    with pytest.raises(ValueError, match="set cytape.graph.checkpoint.MIN_CHECKPOINT"):
        cytape.function(cytape.jacfwd(small))(np.zeros(3))


@pytest.mark.parametrize("wrap, error, said", [
    (lambda f: cytape.checkpoint(f, policy=["nope"]), ValueError, "there is no 'nope'"),
    (lambda f: cytape.function(f, checkpoints="memory"), ValueError, "no bottleneck"),
    (lambda f: cytape.function(f, checkpoints="auto", memory_budget=1), MemoryBudgetError,
     "memory_budget=1 bytes")])
def test_a_choice_of_nothing_is_saved_with_the_graph(wrap, error, said, tmp_path):
    with cytape.Graph().as_default() as graph:
        x = cytape.placeholder("float64", (3,), name="x")
        cytape.identity(wrap(lambda x: cnp.exp(cnp.tanh(x) * x + x))(x), name="y")
    graph.save(tmp_path / "graph")
    messages = []
    for kept in (graph, cytape.Graph.load(tmp_path / "graph")):
        x, y = (kept.get_tensor_by_name(f"{name}:0") for name in ("x", "y"))
        with pytest.raises(error, match=said) as caught:
            cytape.gradients(y, x)
        messages.append((str(caught.value), getattr(caught.value, "smallest_bytes", None)))
    assert messages[0] == messages[1]


def test_an_accumulator_follows_some_inputs_only():
    v = cytape.Variable(np.full(2, 3.0))
    f = cytape.function(cytape.checkpoint(lambda x: cnp.exp(x) * v))
    x = np.array([0.1, 0.2])
    np.testing.assert_allclose(cytape.jvp(f, (x,), (np.ones(2),))[1], 3.0 * np.exp(x))
    with cytape.ForwardAccumulator([v], [cytape.constant(np.ones(2))]) as accumulator:
        y = f(cytape.constant(x))
    np.testing.assert_allclose(accumulator.jvp(y), np.exp(x))


def test_traces_that_capture_symbols_are_collected_with_their_graph():
    def built():
        with cytape.Graph().as_default() as graph:
            x = cytape.placeholder("float64", (3,))
            s = cnp.sin(x)
            f = cytape.function(lambda y: cnp.exp(cnp.tanh(y * s)) * s, checkpoints=["Tanh"])
            y = f(x)
            assert [op.type for op in graph.get_operations()].count("CheckpointedCall") == 1
            found = cytape.gradients(y, [x, s])
        got = cytape.Session(graph).run(found, {x: [0.1, 0.2, 0.3]})
        return got, weakref.ref(graph)

    (dx, ds), graph = built()
    x = np.array([0.1, 0.2, 0.3])
    s, c = np.sin(x), np.cos(x)
    t = np.tanh(x * s)
    np.testing.assert_allclose(ds, np.exp(t) * (1 + s * x * (1 - t**2)))
    np.testing.assert_allclose(dx, ds * c + np.exp(t) * s * (1 - t**2) * s)
    gc.collect()
    assert graph() is None


@pytest.mark.parametrize("wrap", [
    cytape.recompute_grad, lambda f: cytape.checkpoint(f, policy="Tanh"),
    lambda f: cytape.function(f, checkpoints=["Tanh"])])
def test_graphs_with_such_calls_are_saved_and_differentiated_again(wrap, tmp_path):
    with cytape.Graph().as_default() as graph:
        x = cytape.placeholder("float64", (3,), name="x")
        y = cytape.identity(wrap(lambda x: cnp.exp(cnp.tanh(x)) * x)(x), name="y")
        cytape.identity(cytape.gradients(y, x)[0], name="slope")
    graph.save(tmp_path / "graph")
    loaded = cytape.Graph.load(tmp_path / "graph")
    x, y, slope = (loaded.get_tensor_by_name(f"{name}:0") for name in ("x", "y", "slope"))
    again = cytape.gradients(y, x)[0]
    value = np.linspace(0.1, 0.3, 3)
    found = cytape.Session(loaded).run([slope, again], {x: value})
    wanted = np.exp(np.tanh(value)) * (1 + value * (1 - np.tanh(value) ** 2))
    for one in found:
        np.testing.assert_allclose(one, wanted)


def test_it_returns_its_last_inputs():
    trace = cytape.function(lambda x: cnp.sin(x)).get_concrete_function(np.array(1.0))
    assert checkpointed_call_op(1.0, 2.0, trace=trace, n_kept=0) == [2.0]
    with cytape.Graph().as_default():
        x = cytape.placeholder("float64", ())
        for tensors, n_kept in (((x,), 0), ((x, x, x), 1), ((x, x), 2), ((x, x), -1)):
            with pytest.raises(ValueError, match="1 inputs and 1 outputs"):
                checkpointed_call_op(*tensors, trace=trace, n_kept=n_kept)
