"""Bodies: functions that nodes run, each a graph with inputs and outputs.

The types of bodies and of their graphs are defined in a higher layer, which installs them here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

__all__ = ["MOST_NESTED", "body_type", "install_bodies", "new_body", "new_body_graph"]

MOST_NESTED = 64  # bodies in bodies, in a file


class _Types(NamedTuple):
    body: Any
    graph: Any


_types: list[_Types] = []


def install_bodies(body: Any, graph: Any) -> None:
    """Install the types of bodies and of their graphs.

    Parameters
    ----------
    body : type
        Called with a name, a graph, the symbols of its inputs, and its outputs.
    graph : type
        Of such a graph; called with the name, and None.
    """
    _types[:] = [_Types(body, graph)]


def body_type() -> type:
    """Return the type of bodies.

    Returns
    -------
    type
    """
    return _types[0].body


def new_body_graph(name: str) -> Any:
    """Return a graph for a new body.

    Parameters
    ----------
    name : str

    Returns
    -------
    Graph
    """
    return _types[0].graph(name, None)


def new_body(graph: Any, inputs: Sequence[int], outputs: Sequence[int]) -> Any:
    """Return the body that a graph is, to which nothing can be added then.

    Parameters
    ----------
    graph : Graph
    inputs, outputs : sequence of int
        Symbols.

    Returns
    -------
    object
    """
    return _types[0].body(graph.name, graph, inputs, list(map(graph.tensor_at, outputs)))
