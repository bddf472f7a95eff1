"""Recomputation by a schedule, and the tensors that the backward pass of a graph reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cytape.graph.checkpoint.recomputation import Recomputation
from cytape.graph.differentiation.places import Place, Places

__all__ = ["Observer", "Scheduled"]


class Observer:
    """Stands in for nothing, but notes when the backward pass arrives at which node.

    Attributes
    ----------
    arrivals : list of (int, int)
        The node, and how many nodes the graph had then.
    """

    def __init__(self, places: Places, targets: list[Place], sources: list[Place]) -> None:
        self._graph = places.graphs[0]
        self.targets, self.sources = targets, sources
        self.arrivals: list[tuple[int, int]] = []

    def stand_in(self, node: int, gradients: list[Any]) -> tuple[int, int]:
        """Return the node itself, twice."""
        self.arrivals.append((node, self._graph.n_nodes))
        return node, node


class Scheduled(Recomputation):
    """Copies of ops that are made when a schedule says so; the backward pass reads the last ones.

    Parameters
    ----------
    places, targets, sources
        As for `Recomputation`.
    schedule : mapping of int to sequence of int
        By a node at which the backward pass arrives: which nodes to copy before, in order.
    reads : mapping of int to (bool, bool)
        By node: whether its gradient reads its inputs, and its outputs.
    """

    def __init__(
        self, places: Places, targets: list[Place], sources: list[Place],
        schedule: Mapping[int, Sequence[int]], reads: Mapping[int, tuple[bool, bool]],
    ) -> None:
        super().__init__(places, targets, sources, ())
        self._schedule = schedule
        self._reads = reads
        self._batch: set[int] = set()
        self._made_of: dict[int, tuple[int, ...]] = {}  # copy -> the copies of its inputs

    def stand_in(self, node: int, gradients: list[Any]) -> tuple[int, int]:
        """Return nodes with the last copies of the values that the gradient of a node reads."""
        values = self._schedule.get(node, ())
        if values:
            self._make(values, gradients)
        present = self._copies.get(node, node)
        reads_inputs, _ = self._reads.get(node, (True, True))
        if not reads_inputs or self._makers(present, node) == self._present_makers(node):
            return present, present
        # Copied only for its inputs; its outputs have no readers, so it never runs.
        self._make([node], gradients)
        made = self._copies.pop(node)
        if present != node:
            self._copies[node] = present
        return made, present

    def _make(self, nodes: Sequence[int], gradients: list[Any]) -> None:
        self._batch = set()
        self._build(list(nodes), self._arrival(gradients))
        self._waits = []

    def _makers(self, present: int, node: int) -> tuple[int, ...]:
        return self._made_of.get(present) or tuple(
            map(self._graph.node_of, self._graph.inputs_of(node)))

    def _present_makers(self, node: int) -> tuple[int, ...]:
        graph = self._graph
        makers = map(graph.node_of, graph.inputs_of(node))
        return tuple(self._copies.get(maker, maker) for maker in makers)

    def _copy_of(self, node: int) -> int | None:
        """Return a copy that may be read as it is; all else is read through an identity."""
        return self._copies.get(node) if node in self._batch else None

    def _source_of(self, symbol: int) -> int:
        copy = self._copies.get(self._graph.node_of(symbol))
        if copy is None:
            return symbol
        return self._graph.outputs_of(copy)[self._graph.output_position(symbol)]

    def _note(self, node: int, copy: int) -> None:
        self._made_of[copy] = self._present_makers(node)
        self._copies[node] = copy
        self._batch.add(node)
