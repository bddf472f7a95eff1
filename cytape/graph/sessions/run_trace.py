"""RunTrace: time and memory of each op of one run, as a table or in Chrome's trace format."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cytape.tensor.pictures.trace_events import Span, trace_json

if TYPE_CHECKING:
    from cytape.ops.calls.symbolic import SymbolicGraph


@dataclass(frozen=True)
class OpEvent:
    """One step of a run.

    Attributes
    ----------
    node : int
        The op's position in the graph. An op may take several steps; one that only shows what
        another computed in another shape takes none.
    op_type, name : str
    start, seconds : float
        When it began, on the clock of `time.perf_counter`, and how long it took.
    nbytes : int
        Of the op's outputs, as far as their shapes are known.
    live_bytes : int
        Of all intermediate and fetched values that were in memory at that time.
    """

    node: int
    op_type: str
    name: str
    start: float
    seconds: float
    nbytes: int
    live_bytes: int


class RunTrace:
    """Times and memory of the ops of a run.

    Attributes
    ----------
    events : list of OpEvent
        In the order in which they ran.

    Examples
    --------
    >>> import numpy as np
    >>> from cytape.graph import Graph
    >>> from cytape.graph.run.plan import Plan
    >>> from cytape.graph.model.subgraph import Subgraph
    >>> graph = Graph()
    >>> x = graph.placeholder("float64", (1000,))
    >>> y = np.sum(np.exp(x))
    >>> trace = RunTrace()
    >>> plan = Plan(Subgraph(graph, (graph.symbol_of(x),), (graph.symbol_of(y),)))
    >>> _ = plan.run([np.zeros(1000)], trace=trace)
    >>> [event.op_type for event in trace.events[:2]]
    ['Exp', 'Sum']
    >>> trace.peak_bytes >= 8000
    True
    """

    def __init__(self) -> None:
        self.events: list[OpEvent] = []

    def add(
        self, graph: SymbolicGraph, node: int, start: float, end: float, live_bytes: int
    ) -> None:
        """Note that an op ran.

        Parameters
        ----------
        graph : SymbolicGraph
        node : int
        start, end : float
        live_bytes : int

        Examples
        --------
        >>> from cytape.graph import Graph
        >>> graph = Graph()
        >>> x = graph.placeholder("float64", (3,))
        >>> trace = RunTrace()
        >>> trace.add(graph, 0, 1.0, 1.5, 24)
        >>> trace.events[0].seconds, trace.events[0].nbytes
        (0.5, 24)
        """
        outputs = graph.outputs_of(node)
        specs = [graph.spec_of(symbol) for symbol in outputs]
        name = graph.describe(outputs[0]) if len(outputs) else f"node {node}"
        nbytes = sum(spec.nbytes for spec in specs if spec.known)
        self.events.append(
            OpEvent(node, graph.ops[node].name, name, start, end - start, nbytes, live_bytes))

    def keep(self, results: list[Any]) -> list[Any]:
        """Return the results of a run, whose memory a profile follows."""
        return results

    @property
    def peak_bytes(self) -> int:
        """The most bytes of intermediate and fetched values at any time."""
        return max((event.live_bytes for event in self.events), default=0)

    @property
    def seconds(self) -> float:
        """The total time of all ops."""
        return sum(event.seconds for event in self.events)

    def to_chrome_trace(self) -> str:
        """Return the run in the trace event format: JSON for ``chrome://tracing`` and Perfetto.

        Examples
        --------
        >>> import json
        >>> json.loads(RunTrace().to_chrome_trace())["traceEvents"]
        []
        """
        return trace_json(
            [Span(event.op_type, "op", event.start, event.start + event.seconds,
                  {"name": event.name, "node": event.node, "bytes": event.nbytes})
             for event in self.events],
            [(event.start, event.live_bytes) for event in self.events])

    def table(self, n_rows: int = 20) -> str:
        """Return a table of the op types with the longest times.

        Parameters
        ----------
        n_rows : int, optional

        Examples
        --------
        >>> print(RunTrace().table())
        op type                  steps  microseconds     share        bytes
        """
        totals: dict[str, list[float]] = defaultdict(lambda: [0, 0.0, 0])
        for event in self.events:
            row = totals[event.op_type]
            row[0] += 1
            row[1] += event.seconds
            row[2] += event.nbytes
        whole = self.seconds or 1.0
        lines = [f"{'op type':<24} {'steps':>5} {'microseconds':>13} {'share':>9} {'bytes':>12}"]
        for op_type, (steps, seconds, nbytes) in sorted(
                totals.items(), key=lambda item: -item[1][1])[:n_rows]:
            lines.append(f"{op_type:<24} {steps:>5} {seconds * 1e6:>13.1f} "
                         f"{seconds / whole:>9.1%} {nbytes:>12,}")
        return "\n".join(lines)
