"""Reports of traced runs."""

import json

import numpy as np
import pytest

import cytape
from cytape.graph.model.graph import Graph
from cytape.graph.sessions.run_trace import RunTrace
from tests.cases import each
from tests.graph.plans import plan_of


def traced():
    graph = Graph()
    x = graph.placeholder("float64", (1000,))
    y = np.sort(np.exp(x) * 2.0)
    trace = RunTrace()
    (result,) = plan_of(graph, [x], [y]).run([np.zeros(1000)], trace=trace)
    np.testing.assert_array_equal(result.numpy(), np.full(1000, 2.0))
    return graph, trace


def test_each_op_has_its_event():
    graph, trace = traced()
    assert [event.op_type for event in trace.events] == ["Exp", "Multiply", "Sort"]
    for event in trace.events:
        assert graph.ops[event.node].name == event.op_type
        assert event.nbytes == 8000
        assert event.live_bytes >= 8000
        assert event.seconds > 0
    assert trace.peak_bytes == 16000
    assert trace.seconds == sum(event.seconds for event in trace.events)


def test_chrome_trace_is_valid():
    _, trace = traced()
    document = json.loads(trace.to_chrome_trace())
    complete = [record for record in document["traceEvents"] if record["ph"] == "X"]
    counters = [record for record in document["traceEvents"] if record["ph"] == "C"]
    assert [record["name"] for record in complete] == ["Exp", "Multiply", "Sort"]
    assert len(counters) == 3
    for record in complete:
        assert {"name", "ph", "ts", "dur", "pid", "tid"} <= record.keys()
    starts = [record["ts"] for record in complete]
    assert starts == sorted(starts)
    assert starts[0] == 0


def test_table_has_a_row_per_op_type():
    _, trace = traced()
    header, *rows = trace.table().splitlines()
    assert header.split()[0] == "op"
    assert {row.split()[0] for row in rows} == {"Exp", "Multiply", "Sort"}
    assert len(trace.table(n_rows=1).splitlines()) == 2


def sums(h):
    return np.cumsum(np.cumsum(h))


@each("program, n_arrays", [
    (lambda x: cytape.cond(x[0] > 0, lambda: sums(x), lambda: x * 2.0), 2),  # one of them returned
    (lambda x: cytape.while_loop(lambda h: h[0] < 9, lambda h: sums(h) + h, (x,)), 3),
])  # fmt: skip
def test_times_of_bodies_are_counted(program, n_arrays):
    with cytape.Graph().as_default() as graph:
        x = cytape.placeholder("float64", (1000,))
        y = program(x)
    session = cytape.Session(graph)
    for _ in range(3):
        trace = RunTrace()
        session.run(y, {x: np.ones(1000)}, options=trace)
    assert trace.peak_bytes == pytest.approx(n_arrays * 8000, rel=0.02)
