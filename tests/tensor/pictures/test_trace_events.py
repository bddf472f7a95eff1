"""The trace event format."""

import json

from cytape.tensor.pictures.trace_events import Span, trace_json


def test_times_are_microseconds_since_the_first():
    records = json.loads(trace_json(
        [Span("b", "op", 2.5, 3.0, {}), Span("a", "op", 2.0, 4.0, {"line": "x"})], [(2.25, 8)], 7,
    ))["traceEvents"]
    assert [(record["ph"], record["ts"], record.get("dur")) for record in records] == [
        ("X", 0.0, 2e6), ("C", 0.25e6, None), ("X", 0.5e6, 0.5e6)]
    assert {record["tid"] for record in records} == {7}


def test_nothing():
    assert json.loads(trace_json([], []))["traceEvents"] == []
