"""Calls into graphs, for rooms that do not know graphs: loops, rows, batches."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

__all__ = [
    "for_all_members", "install_for_all_members", "install_loop_in_graph", "install_row_in_graph",
    "loop_in_graph", "with_row_in_graph",
]  # fmt: skip

_loop: Callable[[Callable, Any, int, int], Any] | None = None
_with_row: Callable[[Any, Any, Any, int], Any] | None = None
_for_all_members: Callable[[Callable, Any, int], Any] | None = None


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


def install_row_in_graph(function: Callable[[Any, Any, Any, int], Any]) -> None:
    """Tell how to write a row in a graph.

    Parameters
    ----------
    function : callable
        As `with_row_in_graph`.
    """
    global _with_row
    _with_row = function


def with_row_in_graph(x: Any, row: Any, number: Any, axis: int) -> Any:
    """Return an array with another row, of a number that only a run tells, along an axis."""
    assert _with_row is not None, "whoever builds graphs has installed it"
    return _with_row(x, row, number, axis)


def install_for_all_members(function: Callable[[Callable, Any, int], Any]) -> None:
    """Tell how to call a function for all members of a batch.

    Parameters
    ----------
    function : callable
        As `for_all_members`.
    """
    global _for_all_members
    _for_all_members = function


def for_all_members(function: Callable, members: Any, at_a_time: int) -> Any:
    """Call a function for all members of a batch, so many at a time."""
    if _for_all_members is None:
        importlib.import_module("cytape.graph.batching.vmap")
    assert _for_all_members is not None
    return _for_all_members(function, members, at_a_time)
