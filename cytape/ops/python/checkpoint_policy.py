"""Checkpoint policies: users' choices of the values that a checkpointed call keeps."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

__all__ = ["KINDS", "NOTHING", "Automatic", "Policy", "check_budget", "checked_name"]

KINDS = "nothing", "everything", "dots"
_ELSEWHERE = {  # their names in JAX
    "nothing_saveable": "nothing", "everything_saveable": "everything", "dots_saveable": "dots",
    "checkpoint_dots": "dots", "dots_with_no_batch_dims_saveable": "dots",
    "checkpoint_dots_with_no_batch_dims": "dots"}


class Policy:
    """A choice of the intermediates to keep.

    Parameters
    ----------
    policy : str, list of str or None
        As `cytape.checkpoint` takes it.

    Attributes
    ----------
    kept, but : tuple of str
        Kinds, names and op types that are kept; and those of them that are not.

    Raises
    ------
    TypeError, ValueError
        If it is no policy.

    Examples
    --------
    >>> Policy(["dots", "-logits"])
    Policy(kept=('dots',), but=('logits',))
    >>> Policy("-logits").kept
    ('everything',)
    """

    def __init__(self, policy: Any) -> None:
        items = ["nothing"] if policy is None else [policy] if isinstance(policy, str) else policy
        if not isinstance(items, (list, tuple, set, frozenset)) or not all(
                isinstance(item, str) for item in items):
            raise TypeError(
                "policy must be 'nothing', 'everything', 'dots', or a list of names (given by "
                f"cytape.checkpoint_name) and op types, got {type(policy).__name__}: {policy!r}")
        items = sorted(items) if isinstance(items, (set, frozenset)) else list(items)
        if not items or "" in items or "-" in items:
            raise ValueError(
                f"policy has no entries: {policy!r}; to keep nothing pass 'nothing'")
        for item in items:
            kind = _ELSEWHERE.get(item.removeprefix("-"))
            if kind is not None:
                raise ValueError(f"policy {item!r} is unknown here: say {kind!r}")
        self.but = tuple(item[1:] for item in items if item.startswith("-"))
        self.kept = tuple(item for item in items if not item.startswith("-")) or ("everything",)
        if "nothing" in self.kept and len(items) > 1 or "nothing" in self.but:
            raise ValueError(f"policy keeps nothing and something: {policy!r}")

    def __repr__(self) -> str:
        return f"Policy(kept={self.kept}, but={self.but})"


NOTHING = Policy("nothing")


def checked_name(name: Any) -> str:
    """Return a name that policies can have, or raise TypeError or ValueError."""
    if not isinstance(name, str):
        raise TypeError(f"a name must be a string, got {type(name).__name__}: {name!r}")
    if not name or name.startswith("-") or name in KINDS:
        raise ValueError(
            f"{name!r} cannot be a name: 'nothing', 'everything' and 'dots' are policies, and a "
            "minus before a name excludes it")
    return name


class Automatic(NamedTuple):
    """A choice by a memory budget.

    Attributes
    ----------
    memory_budget : int, float or None
        Bytes, a fraction of what it takes to keep everything, or as little as takes a third more
        time.
    """

    memory_budget: float | None


def check_budget(budget: Any) -> None:
    """Raise TypeError or ValueError for an invalid memory budget."""
    if budget is None:
        return
    if isinstance(budget, (bool, np.bool_)) or not isinstance(
            budget, (int, float, np.integer, np.floating)):
        raise TypeError(
            f"memory_budget must be bytes, an integer, or a fraction of the plain peak, a float; "
            f"got {budget!r}")
    is_fraction = isinstance(budget, (float, np.floating))
    if not (0 < budget <= 1 if is_fraction else budget > 0):
        raise ValueError(
            f"memory_budget must be positive, and a fraction (a float) at most 1; got {budget!r}")
