"""The ops between `xs` and `ys` that can be recomputed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from cytape.graph.differentiation.places import Place, Places
from cytape.graph.differentiation.reach import BETWEEN, REACHED, nodes_between, reach


def dependents(places: Places, sources: Iterable[Place]) -> bytearray:
    """Return the values that depend on sources, also through bodies and variables.

    Returns
    -------
    bytearray
        Per symbol of the graph that is built: not 0 if it depends on a source, or is one.
    """
    marks = [bytearray(graph.n_symbols) for graph in places.graphs]
    for level, symbol in sources:
        marks[level][symbol] = REACHED
    for level in reversed(range(len(places.graphs))):
        graph, found = places.graphs[level], marks[level]
        for symbol, (outer, origin) in places.captures_of(level).items():
            found[symbol] |= marks[outer][origin]
        reach(graph, found, gradients=False)
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
        graph: Any = places.graphs[0]
        self.graph = graph
        self.ends = {symbol for level, symbol in [*targets, *sources] if level == 0}
        made = {symbol for level, symbol in sources if level == 0}
        marks = dependents(places, sources)
        for level, symbol in targets:
            if level == 0 and marks[symbol]:
                marks[symbol] |= BETWEEN
        self.nodes: list[int] = [
            node for node in reversed(nodes_between(graph, marks, gradients=False))
            if graph.inputs_of(node) and not graph.ops[node].stateful
            and made.isdisjoint(graph.outputs_of(node))]

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
