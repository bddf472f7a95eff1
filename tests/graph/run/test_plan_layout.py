"""How much memory plans take, and how often."""

import gc
import tracemalloc

import numpy as np
import pytest

from cytape.errors import GraphError
from cytape.graph.model.graph import Graph
from cytape.graph.run.plan_layout import poison_memory
from cytape.graph.sessions.run_trace import RunTrace
from cytape.ops.engine.op_kinds import general
from tests.cases import each
from tests.conftest import POISONS
from tests.graph.plans import assert_as_reference, plan_of
from tests.graph.programs import new_graph

MEGABYTE = 1 << 20


def test_a_chain_of_large_ops_takes_little_memory():
    graph, x = new_graph((MEGABYTE // 8,))
    y = x
    for _ in range(100):
        y = np.sin(y) * 0.5
    y = np.sum(y)
    plan = plan_of(graph, [x], [y])
    assert plan.peak_bytes <= 2.1 * MEGABYTE
    trace = RunTrace()
    plan.run([np.ones(MEGABYTE // 8)], trace=trace)
    assert trace.peak_bytes == plan.peak_bytes


def test_values_of_python_calls_go_after_their_last_reader():
    graph, x = new_graph((MEGABYTE // 8,))
    y = x
    for _ in range(20):
        y = np.cumsum(y) * 0.5
    y = np.sum(y)
    plan = plan_of(graph, [x], [y])
    array = np.zeros(MEGABYTE // 8)
    plan.run([array])
    tracemalloc.start()
    plan.run([array])
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 5 * MEGABYTE


def test_nothing_is_left_behind():
    graph, x = new_graph((500,))
    y = np.cumsum(np.sin(x)) + np.max(x)
    plan = plan_of(graph, [x], [y, x])
    array = np.ones(500)
    plan.run([array])
    gc.collect()
    tracemalloc.start()

    def run_and_fail(times):
        for _ in range(times):
            plan.run([array])
            with pytest.raises(GraphError):
                plan.run([array[:3]])
        gc.collect()

    run_and_fail(times=50)  # fills caches, such as lines of tracebacks
    before = tracemalloc.get_traced_memory()[0]
    run_and_fail(times=50)
    after = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert after - before < 10_000


def test_small_values_share_slots():
    graph, x = new_graph((8,))
    y = x
    for _ in range(100):
        y = np.sin(y[::-1]) + x
    plan = assert_as_reference(graph, [x], [y], [np.ones(8)])
    assert plan.peak_bytes <= 4 * 64


@each("order", [1, -1, 3])
def test_free_blocks_are_joined(order):
    graph, x = new_graph((10_000,))
    parts = [np.sin(x[k * 1000 : (k + 1) * 1000]) for k in range(10)]
    total = sum(np.sum(parts[k * order % 10]) for k in range(10))
    whole = np.cos(x * total)
    plan = assert_as_reference(graph, [x], [np.sum(whole)], [np.arange(10_000.0)])
    assert plan.peak_bytes < 90_000
    assert plan.arena_bytes < 90_000


def test_sizes_of_all_kinds():
    graph = Graph()
    x = graph.placeholder("float32", (3000,))
    rng = np.random.default_rng(0)
    values = [x]
    for _ in range(200):
        start, stop = sorted(rng.integers(0, 3000, 2))
        part = np.sin(x[start:stop]) if rng.random() < 0.5 else x[start:stop] > x[start]
        values.append(np.sum(part * 1.0) + x * 0.5)
        if len(values) > 6:
            values.pop(rng.integers(len(values)))
    with np.errstate(all="ignore"):
        assert_as_reference(graph, [x], values, [rng.normal(size=3000).astype(np.float32)])


found = []


def _keep(x):
    found.append(x)
    return x + 1.0


def _look(x):
    found.append(found[-1].tobytes() if found else None)
    return x + 1.0


_keep.__module__ = _look.__module__ = "cytape.tests"  # as theirs, their operands are not copied
keep, look = (general(name, function, shape_rule=lambda x: x) for name, function in (
    ("DeclaredKeep", _keep), ("DeclaredLook", _look)))


@each(n=[1, 1000], byte=POISONS)
def test_memory_is_filled_before_each_run(byte, n):
    found.clear()
    graph, x = new_graph((n,))
    plan = plan_of(graph, [x], [keep(np.exp(look(x)))])
    poison_memory(byte)
    for _ in range(2):
        [result] = plan.run([np.zeros(n)])
        np.testing.assert_array_equal(result, np.exp(np.ones(n)) + 1.0)
    assert found[2] == bytes([byte]) * 8 * n
