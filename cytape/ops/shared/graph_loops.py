"""Loops of a known number of steps where a graph is built, for rooms that do not know graphs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["install_loop_in_graph", "loop_in_graph"]

_loop: Callable[[Callable, Any, int, int], Any] | None = None


def install_loop_in_graph(function: Callable[[Callable, Any, int, int], Any]) -> None:
    """Tell how to add a loop to the graph that is being built.

    Parameters
    ----------
    function : callable
        As `loop_in_graph`.
    """
    global _loop
    _loop = function


def loop_in_graph(step: Callable, state: Any, n: int, snapshots: int) -> Any:
    """Apply a function to its own results so many times, its gradient keeping so many states."""
    assert _loop is not None, "whoever builds graphs has installed it"
    return _loop(step, state, n, snapshots)
