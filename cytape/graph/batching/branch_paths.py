"""Batches of calls of a function that branches by values: calls that take the same branches.

A path is the tuple of outcomes of the conditions that a call meets, with the places of these in the
program. Along a path a function can be traced: `bool` of a symbolic tensor is the next outcome.
Conditions of tensors that do not differ between calls are part of it, too; so functions must get
the same arguments as tensors to find a path and to follow it.
"""

from __future__ import annotations

import sys
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
    """A condition beyond the end of the path, of `tensor` at `place`."""

    def __init__(self, tensor: Any, place: tuple) -> None:
        super().__init__(f"the value of {tensor!r} decides about a branch")
        self.tensor, self.place = tensor, place


def along(path: tuple, function: Callable, *args: Any) -> Any:
    """Call a function whose conditions have known outcomes."""
    left = iter(path)

    def outcome(tensor: Any) -> bool:
        frame = sys._getframe(1)
        here = frame.f_code.co_name, frame.f_code.co_firstlineno, frame.f_lasti
        for place, known in left:
            if place != here:
                raise SymbolicTensorError(f"another condition than before, of {tensor!r}")
            return known
        raise Undecided(tensor, here)

    before = getattr(branches, "outcome", None)
    branches.outcome = outcome
    try:
        return function(*args)
    finally:
        branches.outcome = before


def conditions(path: tuple, function: Callable, *args: Any) -> Any:
    """Return the condition that follows a path in each call of a batch; a number if none does.

    A dict of the conditions by their place, which a trace keeps.
    """
    places: list = []

    def condition(*args: Any) -> Any:
        try:
            along(path, function, *args)
        except Undecided as found:
            places[:] = [found.place]
            return reshape(not_equal(found.tensor, 0), ())
        return 0.0

    found = vmap(condition)(*args)
    return {(*places, None)[0]: found}


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
        (place, found), = conditions(path, calls).items()
        if place is None:
            groups.append((path, calls))
            continue
        for outcome in (True, False):
            chosen = calls[np.asarray(found) == outcome]
            if chosen.size:
                left.append(((*path, (place, outcome)), chosen))
    return None
