"""Calls whose derivatives compute them again where a graph is built, for rooms below graphs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["install_recomputed_in_graph", "recomputed_in_graph"]

_call: Callable[[Any, Callable, tuple, dict], Any] | None = None


def install_recomputed_in_graph(function: Callable[[Any, Callable, tuple, dict], Any]) -> None:
    """Tell how to add such a call to a graph.

    Parameters
    ----------
    function : callable
        As `recomputed_in_graph`.
    """
    global _call
    _call = function


def recomputed_in_graph(graph: Any, f: Callable, args: tuple, kwargs: dict) -> Any:
    """Call a function in a graph; its derivatives compute it again from what it uses."""
    assert _call is not None, "whoever builds graphs has installed it"
    return _call(graph, f, args, kwargs)
