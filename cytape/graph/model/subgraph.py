"""Subgraph: what of a graph is to be run, and what it is run with."""

from typing import NamedTuple

from cytape.ops.engine.symbolic import SymbolicGraph


class Subgraph(NamedTuple):
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
