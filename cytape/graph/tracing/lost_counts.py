"""Warnings of draws of counts, which have no derivative, between targets and sources."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from cytape.errors import UnconnectedGradientWarning
from cytape.graph.model.body_flow import Flow
from cytape.tensor.values.user_warnings import warn_of_line

__all__ = ["warn_of_counts"]


def warn_of_counts(graph: Any, targets: Iterable[int], sources: Iterable[int]) -> None:
    """Warn of draws without a derivative that lie between symbols of a graph, line by line."""
    if not any(graph.ops[node].counts or graph.ops[node].runs for node in graph.stateful):
        return
    flow = Flow()
    for place, node, parameter in _between(flow, graph, frozenset(targets), frozenset(sources)):
        location = place.location_of(node)
        if location is None:
            continue
        function, _ = place.ops[node].counts
        file, line, _ = location
        warn_of_line(
            file, line,
            f"cytape.numpy.random.{function}, called in {file}, line {line}, has no derivative in "
            f"{parameter}: derivatives leave out how the draw depends on it. Pass "
            f"cytape.stop_gradient({parameter}) if they should",
            UnconnectedGradientWarning)


def _between(
    flow: Flow, graph: Any, targets: frozenset[int], sources: frozenset[int]
) -> list[tuple[Any, int, str]]:
    """List the draws between sources and targets: graph, node, and the parameter reached."""
    reached, needed = flow.reached(graph, sources), flow.needed(graph, targets)
    found = []
    for node in graph.stateful:
        for run in flow.runs(graph, node):
            found += _between(
                flow, run.body.graph, flow.targets_in(graph, node, run, needed),
                flow.sources_in(graph, node, run, reached))
        if graph.ops[node].counts and not needed.isdisjoint(graph.outputs_of(node)):
            _, parameters = graph.ops[node].counts
            found += [
                (graph, node, parameter) for parameter, symbol
                in zip(parameters, graph.inputs_of(node), strict=False) if symbol in reached]
    return found
