"""Capturing: the operations that a part of a program adds to a graph."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from cytape.graph.model.default_graph import get_default_graph
from cytape.graph.model.graph import Graph
from cytape.graph.model.operation import Operation

__all__ = ["capture_ops"]


@contextmanager
def capture_ops(graph: Graph | None = None) -> Iterator[list[Operation]]:
    """Collect the operations that are made in a ``with`` block.

    Parameters
    ----------
    graph : Graph, optional
        Of which graph; by default the one that is being built.

    Yields
    ------
    list of Operation
        Empty until the block has been left; in the order of their making.

    Raises
    ------
    RuntimeError
        If no graph is given and none is being built.

    Examples
    --------
    >>> import cytape
    >>> graph = cytape.Graph()
    >>> x = graph.placeholder("float64", ())
    >>> with capture_ops(graph) as ops:
    ...     y = abs(x * x)
    >>> [op.type for op in ops]
    ['Multiply', 'Absolute']
    """
    graph = get_default_graph() if graph is None else graph
    ops: list[Operation] = []
    before = graph.n_nodes
    try:
        yield ops
    finally:
        ops += [
            graph.operation_at(graph.node_numbered(number))
            for number in range(before, graph.n_nodes)]
