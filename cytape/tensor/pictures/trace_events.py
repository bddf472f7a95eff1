"""Measured calls in the trace event format: JSON for ``chrome://tracing`` and Perfetto."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

__all__ = ["Span", "trace_json"]


class Span(NamedTuple):
    """A call from start to end, in seconds on any clock."""

    name: str
    category: str
    start: float
    end: float
    about: Mapping[str, Any]


def trace_json(
    spans: Iterable[Span], memory: Iterable[tuple[float, int]], thread: int = 0
) -> str:
    """Return calls, and bytes in memory from some times on, as JSON.

    Examples
    --------
    >>> text = trace_json([Span("Sin", "op", 1.0, 1.5, {"bytes": 8})], [(1.0, 8)])
    >>> [record["ph"] for record in json.loads(text)["traceEvents"]]
    ['X', 'C']
    """
    spans, memory = list(spans), list(memory)
    origin = min([*(span.start for span in spans), *(time for time, _ in memory)], default=0.0)
    common = {"pid": 0, "tid": thread}
    records: list[dict] = [
        {**common, "ph": "X", "ts": (span.start - origin) * 1e6,
         "dur": (span.end - span.start) * 1e6, "cat": span.category, "name": span.name,
         "args": dict(span.about)} for span in spans]
    records += [
        {**common, "ph": "C", "ts": (time - origin) * 1e6, "name": "memory",
         "args": {"live bytes": nbytes}} for time, nbytes in memory]
    records.sort(key=lambda record: record["ts"])
    return json.dumps({"traceEvents": records, "displayTimeUnit": "ns"})
