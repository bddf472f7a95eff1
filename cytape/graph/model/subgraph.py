"""Subgraph: what of a graph is to be run, and what it is run with."""

from dataclasses import dataclass

from cytape.ops.engine.symbolic import SymbolicGraph


@dataclass(frozen=True)
class Subgraph:
    """A graph with its ends: what optimisation passes map to another, and what plans are made of.

    Attributes
    ----------
    graph : SymbolicGraph
    feeds : tuple of int
        Symbols whose values are given. Whatever their nodes would do, it is not done.
    fetches : tuple of int
        Symbols whose values are asked for.
    keep : tuple of int
        Nodes that run in any case, for what they do.
    """

    graph: SymbolicGraph
    feeds: tuple[int, ...]
    fetches: tuple[int, ...]
    keep: tuple[int, ...] = ()
