"""Ops between `xs` and `ys`: those that can be recomputed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from cytape.graph.differentiation.places import Place, Places


def dependents(places: Places, sources: Iterable[Place]) -> bytearray:
    """Return the values that depend on sources, also through bodies and variables.

    Parameters
    ----------
    places : Places
    sources : iterable of (int, int)

    Returns
    -------
    bytearray
        Per symbol of the graph that is built: 1 if it depends on a source, or is one.
    """
    marks = [bytearray(graph.n_symbols) for graph in places.graphs]
    for level, symbol in sources:
        marks[level][symbol] = 1
    for level in reversed(range(len(places.graphs))):
        graph, found = places.graphs[level], marks[level]
        for symbol, (outer, origin) in places.captures_of(level).items():
            found[symbol] |= marks[outer][origin]
        for node in range(graph.n_nodes):
            for symbol in graph.inputs_of(node):
                if found[symbol]:
                    for output in graph.outputs_of(node):
                        found[output] = 1
                    break
    return marks[0]


class Between:
    """The ops between sources and targets that can be recomputed, and their tensors.

    Parameters
    ----------
    places : Places
    targets, sources : list of (int, int)

    Attributes
    ----------
    graph : Graph
        That is built.
    nodes : list of int
        In the order of building. Stateful ones and those that make sources are left out.
    ends : set of int
        The symbols of targets and sources.
    """

    def __init__(self, places: Places, targets: list[Place], sources: list[Place]) -> None:
        self.graph: Any = places.graphs[0]
        self.ends = {symbol for level, symbol in [*targets, *sources] if level == 0}
        made = {symbol for level, symbol in sources if level == 0}
        self._dependent = dependents(places, sources)
        wanted = bytearray(self.graph.n_symbols)
        for level, symbol in targets:
            if level == 0:
                wanted[symbol] = 1
        self.nodes: list[int] = []
        for node in reversed(range(self.graph.n_nodes)):
            outputs = self.graph.outputs_of(node)
            if not any(wanted[symbol] and self._dependent[symbol] for symbol in outputs):
                continue
            inputs = self.graph.inputs_of(node)
            for symbol in inputs:
                wanted[symbol] = 1
            if inputs and not self.graph.ops[node].stateful and made.isdisjoint(outputs):
                self.nodes.append(node)
        self.nodes.reverse()

    def tensors(self) -> list[int]:
        """List the inputs and outputs of the ops, without sources and targets.

        Returns
        -------
        list of int
            Symbols, each once, in the order of their making.
        """
        found: set[int] = set()
        for node in self.nodes:
            found.update(self.graph.inputs_of(node), self.graph.outputs_of(node))
        return sorted(found - self.ends)
