"""Batches of calls of a function that branches by values: calls that take the same branches.

A path is the tuple of outcomes of the conditions that a call meets. Along a path a function can be
traced: `bool` of a symbolic tensor is the next outcome.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cytape.errors import SymbolicTensorError
from cytape.graph.batching.vmap import vmap
from cytape.graph.tracing.kept_traces import Identity
from cytape.ops.comparisons import not_equal
from cytape.ops.shaping import reshape
from cytape.tensor.recording.conversion_guards import branches

__all__ = ["along", "conditions", "groups_of", "manner_of", "note_manner"]

MOST_PATHS = 16
MOST_KNOWN = 1000

_known: dict = {}  # manners in which functions are computed, and their codes, by identity


def manner_of(identity: Identity | None) -> str:
    """Return how a batch of calls is computed: "together", in "groups" or "one by one"."""
    return _known.get(identity and identity.key, ("together",))[0]


def note_manner(identity: Identity | None, manner: str) -> None:
    """Remember how batches of calls of a function are computed."""
    if identity is not None:
        if len(_known) >= MOST_KNOWN:
            _known.clear()
        _known[identity.key] = manner, identity.codes


class Undecided(SymbolicTensorError):
    """A condition beyond the end of the path: `tensor`."""

    def __init__(self, tensor: Any) -> None:
        super().__init__(f"the value of {tensor!r} decides about a branch")
        self.tensor = tensor


def along(path: tuple, function: Callable, *args: Any) -> Any:
    """Call a function whose conditions have known outcomes."""
    left = iter(path)

    def outcome(tensor: Any) -> bool:
        for known in left:
            return known
        raise Undecided(tensor)

    before = getattr(branches, "outcome", None)
    branches.outcome = outcome
    try:
        return function(*args)
    finally:
        branches.outcome = before


def conditions(path: tuple, function: Callable, *args: Any) -> Any:
    """Return the condition that follows a path in each call of a batch; a number if none does."""
    def condition(*args: Any) -> Any:
        try:
            along(path, function, *args)
        except Undecided as found:
            return reshape(not_equal(found.tensor, 0), ())
        return 0.0

    return vmap(condition)(*args)


def groups_of(conditions: Callable, n: int) -> list | None:
    """Return the paths of a batch of calls, and which calls take each; None if these are many.

    Parameters
    ----------
    conditions : callable
        Takes a path and the numbers of calls that begin with it.
    n : int
        Number of calls.
    """
    groups: list = []
    left: list = [((), np.arange(n))]
    for _ in range(2 * MOST_PATHS):
        if not left:
            return groups
        path, calls = left.pop()
        found = np.asarray(conditions(path, calls))
        if found.dtype != bool:
            groups.append((path, calls))
            continue
        for outcome in (True, False):
            chosen = calls[found == outcome]
            if chosen.size:
                left.append(((*path, outcome), chosen))
    return None
