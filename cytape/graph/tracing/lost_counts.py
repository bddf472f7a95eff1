"""Counts that are drawn in a trace with what a gradient is asked for: it does not see the draw."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from cytape.errors import UnconnectedGradientWarning
from cytape.ops.engine.general_op import GeneralOp
from cytape.ops.shared.draws import COUNTS
from cytape.tensor.notices import warn_of_line

__all__ = ["RUNS", "Run", "warn_of_counts"]


class Run(NamedTuple):
    """A function that a node runs, once or in a loop.

    Attributes
    ----------
    body : ConcreteFunction
    inputs : sequence of int
        The place of each input of the body among the node's.
    first_output : int
        The place of the first output of the body among the node's; the others follow it.
    n_carried : int
        How many of the first inputs are the first outputs in the next iteration.
    """

    body: Any
    inputs: Sequence[int]
    first_output: int = 0
    n_carried: int = 0


# What stateful nodes run, by op: called with the attributes.
RUNS: dict[Any, Callable[[dict], list[Run]]] = {}


def warn_of_counts(graph: Any, targets: Iterable[int], sources: Iterable[int]) -> None:
    """Warn of draws without a derivative that lie between symbols of a graph, line by line."""
    stateful = {graph.ops[node] for node in graph.stateful}
    if stateful.isdisjoint(COUNTS) and stateful.isdisjoint(RUNS):
        return
    flow = _Flow()
    for place, node, parameter in flow.between(graph, frozenset(targets), frozenset(sources)):
        location = place.location_of(node)
        if location is None:
            continue
        function, _ = COUNTS[place.ops[node]]
        file, line, _ = location
        warn_of_line(
            file, line,
            f"cytape.numpy.random.{function}, called in {file}, line {line}, has no derivative in "
            f"{parameter}: derivatives leave out how the draw depends on it. Pass "
            f"cytape.stop_gradient({parameter}) if they should",
            UnconnectedGradientWarning)


class _Flow:
    """What depends on what in graphs; bodies are gone through once for each question."""

    def __init__(self) -> None:
        self._known: dict[tuple, frozenset[int]] = {}

    def between(
        self, graph: Any, targets: frozenset[int], sources: frozenset[int]
    ) -> list[tuple[Any, int, str]]:
        """List the draws between sources and targets: graph, node, and the parameter reached."""
        reached, needed = self._reached(graph, sources), self._needed(graph, targets)
        found = []
        for node in graph.stateful:
            for run in self._runs(graph, node):
                found += self.between(
                    run.body.graph, self._targets(graph, node, run, needed),
                    self._sources(graph, node, run, reached))
            if graph.ops[node] in COUNTS and not needed.isdisjoint(graph.outputs_of(node)):
                _, parameters = COUNTS[graph.ops[node]]
                found += [
                    (graph, node, parameter) for parameter, symbol
                    in zip(parameters, graph.inputs_of(node), strict=False) if symbol in reached]
        return found

    def _runs(self, graph: Any, node: int) -> list[Run]:
        op = graph.ops[node]
        return RUNS[op](graph.attrs[node]) if op in RUNS else []

    def _reached(self, graph: Any, sources: frozenset[int]) -> frozenset[int]:
        """Return the symbols that depend on some."""
        key = id(graph), "reached", sources
        if key not in self._known:
            reached = set(sources)
            for node in range(graph.n_nodes):
                op, runs = graph.ops[node], self._runs(graph, node)
                for run in runs:
                    inside = self._reached(
                        run.body.graph, self._sources(graph, node, run, reached))
                    reached.update(outside for symbol, outside in _outputs(graph, node, run)
                                   if symbol in inside)
                ends = runs or isinstance(op, GeneralOp) and not op.differentiable
                if not ends and not reached.isdisjoint(graph.inputs_of(node)):
                    reached.update(graph.outputs_of(node))
            self._known[key] = frozenset(reached)
        return self._known[key]

    def _needed(self, graph: Any, targets: frozenset[int]) -> frozenset[int]:
        """Return the symbols on which some depend."""
        key = id(graph), "needed", targets
        if key not in self._known:
            needed = set(targets)
            for node in reversed(range(graph.n_nodes)):
                runs = self._runs(graph, node)
                for run in runs:
                    inside = self._needed(run.body.graph, self._targets(graph, node, run, needed))
                    needed.update(outside for symbol, outside in _inputs(graph, node, run)
                                  if symbol in inside)
                if not runs and not needed.isdisjoint(graph.outputs_of(node)):
                    needed.update(graph.inputs_of(node))
            self._known[key] = frozenset(needed)
        return self._known[key]

    def _sources(self, graph: Any, node: int, run: Run, reached: Any) -> frozenset[int]:
        """Return the inputs of a body that are reached from outside, in any iteration."""
        sources = frozenset(
            symbol for symbol, outside in _inputs(graph, node, run) if outside in reached)
        while True:
            inside = self._reached(run.body.graph, sources)
            more = sources.union(
                before for before, after in _carried(run) if after in inside)
            if more == sources:
                return sources
            sources = more

    def _targets(self, graph: Any, node: int, run: Run, needed: Any) -> frozenset[int]:
        """Return the outputs of a body that are needed outside, or in a later iteration."""
        targets = frozenset(
            symbol for symbol, outside in _outputs(graph, node, run) if outside in needed)
        while True:
            inside = self._needed(run.body.graph, targets)
            more = targets.union(
                after for before, after in _carried(run) if before in inside)
            if more == targets:
                return targets
            targets = more


def _inputs(graph: Any, node: int, run: Run) -> list[tuple[int, int]]:
    outside = graph.inputs_of(node)
    return [(symbol, outside[i])
            for symbol, i in zip(run.body.input_symbols, run.inputs, strict=True)]


def _outputs(graph: Any, node: int, run: Run) -> list[tuple[int, int]]:
    outside = graph.outputs_of(node)[run.first_output:]
    return list(zip(run.body.output_symbols, outside, strict=False))


def _carried(run: Run) -> list[tuple[int, int]]:
    n = run.n_carried
    return list(zip(run.body.input_symbols[:n], run.body.output_symbols[:n], strict=True))
