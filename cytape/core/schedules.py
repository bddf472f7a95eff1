"""Schedules for going backward through many steps with few of their states in memory.

A program takes steps 0, 1, ..., n - 1; state i is what step i starts from. To go backward it needs
the states in the opposite order. At most so many are kept, the snapshots; all others are computed
again from the nearest one before. State 0 is a snapshot always, and counts as one.

With s snapshots and every step advanced over at most r times one can reverse binomial(s + r, s)
steps; that many repetitions, or one less, for every step are the fewest advances in all.

A. Griewank and A. Walther, "Algorithm 799: revolve", ACM Transactions on Mathematical Software 26
(2000).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import Enum
from math import comb
from typing import NamedTuple

__all__ = ["Action", "Kind", "fewest_advances", "reversal", "sweep"]


class Kind(Enum):
    """What an action of a schedule does."""

    ADVANCE = "advance"  # take the steps from `step` to before `stop`
    STORE = "store"      # keep the present state, that is state `step`
    RESTORE = "restore"  # go on from a snapshot
    REVERSE = "reverse"  # go backward through a step, from the present state, which is its own
    FREE = "free"        # forget a snapshot


class Action(NamedTuple):
    """One action.

    Attributes
    ----------
    kind : Kind
    step : int
    stop : int
        Of an advance.
    """

    kind: Kind
    step: int
    stop: int = -1


def fewest_advances(n_steps: int, n_snapshots: int) -> int:
    """Return the smallest number of steps that must be taken before all have been reversed.

    Parameters
    ----------
    n_steps : int
    n_snapshots : int
        At least one.

    Returns
    -------
    int

    Examples
    --------
    >>> fewest_advances(10_000, 100)
    24747
    >>> fewest_advances(5, 1) == 4 + 3 + 2 + 1
    True
    """
    _check(n_steps, n_snapshots)
    repetitions = _repetitions(n_steps, n_snapshots)
    return max(repetitions * n_steps - comb(n_snapshots + repetitions, n_snapshots + 1), 0)


def sweep(n_steps: int, n_snapshots: int) -> list[int]:
    """Return the states to store in the first pass over a known number of steps.

    Parameters
    ----------
    n_steps : int
    n_snapshots : int
        At least one.

    Returns
    -------
    list of int
        Ascending; the first is 0.

    Examples
    --------
    >>> sweep(10, 3)
    [0, 4, 7]
    """
    _check(n_steps, n_snapshots)
    stored = [0]
    while n_steps - stored[-1] > 1 and len(stored) < n_snapshots:
        remaining = n_steps - stored[-1]
        stored.append(stored[-1] + _first_part(remaining, n_snapshots - len(stored) + 1))
    return stored


def reversal(stored: Sequence[int], n_steps: int, n_snapshots: int) -> Iterator[Action]:
    """Yield what to do, in order, to reverse all steps once a first pass has stored some states.

    Parameters
    ----------
    stored : sequence of int
        Ascending, the first is 0.
    n_steps : int
    n_snapshots : int
        How many states may be stored at a time, those included.

    Yields
    ------
    Action

    Examples
    --------
    >>> for action in reversal([0], 2, 1):
    ...     print(action.kind.value, *action[1:])
    restore 0 -1
    advance 0 1
    reverse 1 -1
    restore 0 -1
    reverse 0 -1
    free 0 -1
    """
    _check(n_steps, n_snapshots)
    kept, stop = list(stored), n_steps
    if kept[:1] != [0] or len(kept) > n_snapshots:
        raise ValueError(
            f"of {n_snapshots} states at the most that are stored the first must be 0, got {kept}")
    while kept:
        start = kept[-1]
        if stop == start:
            yield Action(Kind.FREE, kept.pop())
            continue
        yield Action(Kind.RESTORE, start)
        # With the states that are not in use, the last part as is best for it alone.
        for state in sweep(stop - start, n_snapshots - len(kept) + 1)[1:]:
            yield Action(Kind.ADVANCE, kept[-1], start + state)
            yield Action(Kind.STORE, start + state)
            kept.append(start + state)
        if stop - 1 > kept[-1]:
            yield Action(Kind.ADVANCE, kept[-1], stop - 1)
        yield Action(Kind.REVERSE, stop - 1)
        stop -= 1


def _check(n_steps: int, n_snapshots: int) -> None:
    if n_steps < 0:
        raise ValueError(f"the number of steps must not be negative, got {n_steps}")
    if n_snapshots < 1:
        raise ValueError(f"at least one state must be stored, the first, got {n_snapshots}")


def _repetitions(n_steps: int, n_snapshots: int) -> int:
    """Return how often some step must be advanced over."""
    repetitions, reversible = 0, 1
    while reversible < n_steps:
        repetitions += 1
        reversible = reversible * (n_snapshots + repetitions) // repetitions
    return repetitions


def _first_part(n_steps: int, n_snapshots: int) -> int:
    """Return after how many of at least two steps to store the next state.

    What comes before is reversed last, with as many snapshots but one repetition less, as it has
    been advanced over; the rest with one snapshot less. The first part is as long as that allows
    while the rest is not so short that it could do with fewer repetitions.
    """
    repetitions = _repetitions(n_steps, n_snapshots)
    longest = comb(n_snapshots + repetitions - 1, n_snapshots)
    shortest_rest = comb(n_snapshots + repetitions - 2, n_snapshots - 1)
    return min(longest, n_steps - shortest_rest)
