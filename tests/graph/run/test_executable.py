"""Executables: plans made when they are needed, for each combination of shapes."""

import gc
import tracemalloc

import numpy as np
import pytest

import cytape
from cytape.errors import GraphError
from cytape.graph import Graph
from cytape.graph.model.subgraph import Subgraph
from cytape.graph.run.executable import Executable, peak_of_runs, waits
from cytape.graph.sessions.run_trace import RunTrace
from tests.cases import each
from tests.graph.programs import new_graph


def executable_of(shape):
    graph, x = new_graph(shape)
    y = np.sum(np.tanh(x) * x)
    return Executable(Subgraph(graph, (graph.symbol_of(x),), (graph.symbol_of(y),)))


@each("shape", [(3,), (None,)])
def test_the_first_run_and_later_ones_agree(shape):
    executable = executable_of(shape)
    for x in np.eye(3):
        (result,) = executable.run([x])
        assert float(result) == np.sum(np.tanh(x) * x)


def test_every_shape_has_its_plan():
    executable = executable_of((None,))
    for n in 1, 5, 1, 0, 300:
        x = np.linspace(-1.0, 1.0, n)
        np.testing.assert_allclose(
            float(executable.run([x])[0]), np.sum(np.tanh(x) * x), rtol=1e-14)


@each("fed", [[], [np.zeros(3)] * 2, [np.zeros(4)], [np.zeros(3, "float32")]])
def test_misfits_are_refused_and_nothing_is_lost(fed):
    executable = executable_of((3,))
    for _ in range(2):
        with pytest.raises(GraphError):
            executable.run(fed)
    assert float(executable.run([np.zeros(3)])[0]) == 0.0


def test_old_shapes_make_room_for_new_ones():
    executable = executable_of((None,))

    def bytes_kept(sizes):
        tracemalloc.start()
        try:
            before = tracemalloc.get_traced_memory()[0]
            for n in sizes:
                executable.run([np.ones(n)])
            gc.collect()
            return tracemalloc.get_traced_memory()[0] - before
        finally:
            tracemalloc.stop()

    executable.run([np.ones(5000)])
    a_few, many = bytes_kept(range(1, 65)), bytes_kept(range(101, 601))
    assert many < 3 * a_few
    x = np.linspace(-1.0, 1.0, 7)  # its plan went long ago
    assert float(executable.run([x])[0]) == np.sum(np.tanh(x) * x)


def test_where_ops_wait_for_others_the_first_run_takes_what_the_later_ones_take():
    graph = Graph()
    with graph.as_default():
        x = graph.placeholder("float64", (5000,))
        y = np.cumsum(np.tanh(np.tanh(x) * 2.0) * np.exp(x))
        with graph.control_dependencies([y]):
            z = cytape.identity(x)
        z = np.sum(y * np.tanh(np.exp(z) * z))
    executable = Executable(Subgraph(graph, (graph.symbol_of(x),), (graph.symbol_of(z),)))
    steps = []
    for _ in range(3):
        trace = RunTrace()
        executable.run([np.ones(5000)], trace)
        steps.append([(event.op_type, event.live_bytes) for event in trace.events])
    assert steps[0] == steps[1] == steps[2]
    assert "Fused" in [op_type for op_type, _ in steps[0]]


def test_large_graphs_are_optimised_before_the_first_run():
    for n, first in ((1 << 14, 3), (1 << 18, 1)):  # arrays, of 2 MiB in the end
        graph, x = new_graph((n,))
        a = np.tanh(x)
        y = np.sin(a) * np.exp(a) + a
        subgraph = Subgraph(graph, (graph.symbol_of(x),), (graph.symbol_of(y),))
        executable, peaks = Executable(subgraph), []
        for _ in range(3):
            trace = RunTrace()
            executable.run([np.ones(n)], trace)
            peaks.append(trace.peak_bytes)
        assert peaks[1] == peaks[2] < 2 * 8 * n
        assert (peaks[0] > peaks[1]) == (first > 1)
        assert peak_of_runs(subgraph) == max(peaks)


def test_ops_that_wait_elsewhere_in_the_graph_do_not_count():
    graph, x = new_graph((1000,))
    y = np.tanh(x)
    with graph.as_default(), graph.control_dependencies([y]):
        z = np.tanh(x * 2.0)
    feeds, fetches = (graph.symbol_of(x),), [(graph.symbol_of(each),) for each in (y, z)]
    assert [waits(Subgraph(graph, feeds, each)) for each in fetches] == [False, True]
