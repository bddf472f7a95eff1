"""Dependences between the values of a graph, also through bodies of branches and loops."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from cytape.ops.engine.general_op import GeneralOp
from cytape.ops.engine.partials_op import PartialsOp

__all__ = ["Flow", "Run"]


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


class Flow:
    """Dependences between the symbols of graphs; a query visits each body once."""

    def __init__(self) -> None:
        self._known: dict[tuple, frozenset[int]] = {}

    def runs(self, graph: Any, node: int) -> list[Run]:
        """List the bodies that a node runs."""
        runs = graph.ops[node].runs
        return [] if runs is None else runs(graph.attrs[node])

    def reached(self, graph: Any, sources: frozenset[int]) -> frozenset[int]:
        """Return the symbols that depend on given ones, by differentiable ops."""
        key = id(graph), "reached", sources
        if key not in self._known:
            reached = set(sources)
            for node in range(graph.n_nodes):
                runs = self.runs(graph, node)
                for run in runs:
                    inside = self.reached(
                        run.body.graph, self.sources_in(graph, node, run, reached))
                    reached.update(outside for symbol, outside in _outputs(graph, node, run)
                                   if symbol in inside)
                ends = runs or not has_derivative(graph.ops[node])
                if not ends and not reached.isdisjoint(graph.inputs_of(node)):
                    reached.update(graph.outputs_of(node))
            self._known[key] = frozenset(reached)
        return self._known[key]

    def needed(self, graph: Any, targets: frozenset[int]) -> frozenset[int]:
        """Return the symbols that given ones depend on."""
        key = id(graph), "needed", targets
        if key not in self._known:
            needed = set(targets)
            for node in reversed(range(graph.n_nodes)):
                needed.update(self.inputs_needed(graph, node, needed))
            self._known[key] = frozenset(needed)
        return self._known[key]

    def inputs_needed(self, graph: Any, node: int, needed: Iterable[int]) -> Iterable[int]:
        """Return the inputs of a node that some of its outputs depend on."""
        runs = self.runs(graph, node)
        if not runs:
            return () if set(graph.outputs_of(node)).isdisjoint(needed) else graph.inputs_of(node)
        found: set[int] = set()
        for run in runs:
            inside = self.needed(run.body.graph, self.targets_in(graph, node, run, needed))
            found.update(outside for symbol, outside in _inputs(graph, node, run)
                         if symbol in inside)
        return found

    def sources_in(self, graph: Any, node: int, run: Run, reached: Any) -> frozenset[int]:
        """Return the inputs of a body that are reached from outside, in any iteration."""
        return _settled(self.reached, run, _inputs(graph, node, run), reached, _carried(run))

    def targets_in(self, graph: Any, node: int, run: Run, needed: Any) -> frozenset[int]:
        """Return the outputs of a body that are needed outside, or in a later iteration."""
        carried = [(after, before) for before, after in _carried(run)]
        return _settled(self.needed, run, _outputs(graph, node, run), needed, carried)


def _settled(
    dependent: Callable[[Any, frozenset[int]], frozenset[int]], run: Run,
    ends: Iterable[tuple[int, int]], marked: Any, carried: Iterable[tuple[int, int]],
) -> frozenset[int]:
    """Return the ends of a body that are marked outside of it, or reached in some iteration."""
    found = frozenset(symbol for symbol, outside in ends if outside in marked)
    while True:
        inside = dependent(run.body.graph, found)
        more = found.union(this for this, other in carried if other in inside)
        if more == found:
            return found
        found = more


def has_derivative(op: Any) -> bool:
    """Return whether gradients pass through an op."""
    if isinstance(op, PartialsOp):
        return any(partial is not None for partial in op.partials)
    return not isinstance(op, GeneralOp) or op.differentiable


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
