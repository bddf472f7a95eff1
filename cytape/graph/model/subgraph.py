"""Subgraph: a part of a graph with its inputs, outputs and kept nodes."""

from typing import NamedTuple

from cytape.ops.calls.symbolic import SymbolicGraph


class Subgraph(NamedTuple):
    """A graph with inputs and outputs: passes map one to another, and plans are compiled from one.

    Attributes
    ----------
    graph : SymbolicGraph
    feeds : tuple of int
        Symbols whose values are given; their nodes do not run.
    fetches : tuple of int
        Symbols whose values are computed.
    keep : tuple of int
        Nodes that always run, for their effects.
    """

    graph: SymbolicGraph
    feeds: tuple[int, ...]
    fetches: tuple[int, ...]
    keep: tuple[int, ...] = ()
