"""Counts that are drawn in a trace with what a gradient is asked for: it does not see the draw."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from cytape.errors import UnconnectedGradientWarning
from cytape.ops.engine.general_op import GeneralOp
from cytape.ops.shared.draws import COUNTS
from cytape.tensor.notices import warn_of_line

__all__ = ["warn_of_counts"]


def warn_of_counts(graph: Any, targets: Iterable[int], sources: Iterable[int]) -> None:
    """Warn of draws without a derivative that lie between symbols of a graph, line by line."""
    nodes = range(graph.n_nodes)
    draws = [node for node in nodes if graph.ops[node] in COUNTS]
    if not draws:
        return
    reached, needed = set(sources), set(targets)
    for node in nodes:
        op = graph.ops[node]
        ends = isinstance(op, GeneralOp) and not op.differentiable
        if not ends and not reached.isdisjoint(graph.inputs_of(node)):
            reached.update(graph.outputs_of(node))
    for node in reversed(nodes):
        if not needed.isdisjoint(graph.outputs_of(node)):
            needed.update(graph.inputs_of(node))
    for node in draws:
        location = graph.location_of(node)
        if location is None or needed.isdisjoint(graph.outputs_of(node)) or (
                reached.isdisjoint(graph.inputs_of(node))):
            continue
        function, parameter = COUNTS[graph.ops[node]]
        file, line, _ = location
        warn_of_line(
            file, line,
            f"cytape.numpy.random.{function}, called in {file}, line {line}, has no derivative in "
            f"{parameter}: derivatives leave out how the draw depends on it. Pass "
            f"cytape.stop_gradient({parameter}) if they should",
            UnconnectedGradientWarning)
