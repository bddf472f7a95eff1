"""Recomputation as a numerical problem: programs, schedules, and their time and peak.

A program computes values 0, 1, ..., each from earlier ones; then backward steps read some of the
values. A value that is not in memory when a step reads it is recomputed from others, recursively. A
schedule lists the values that are recomputed before each step. Each copy of a value is freed after
its last reader.

The time of a schedule is that of its recomputations. Its peak is the largest number of bytes in
use: of values and of other memory at that time.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import NamedTuple

__all__ = [
    "Program",
    "Schedule",
    "can_run_again",
    "cost_of",
    "events",
    "live_bytes",
    "peak_of",
    "plain",
    "without_unread",
]

Schedule = tuple[tuple[int, ...], ...]  # per step back, the values computed before it, in order


class Program(NamedTuple):
    """A forward pass and the backward steps.

    Attributes
    ----------
    sizes : sequence of int
        Bytes of each value.
    costs : sequence of float
        Of computing it; `math.inf` if it must not be computed again.
    inputs : sequence of tuple of int
        The values that it is computed from.
    reads : sequence of tuple of int
        Per step back, the values that it reads.
    around : sequence of int
        Bytes of all else while a value is computed the first time. Fewer: none.
    beside : sequence of int
        The same during each step back, with its results. Between two steps, and before the first
        one, at most the larger of the neighbours counts. Fewer items: none.
    """

    sizes: Sequence[int]
    costs: Sequence[float]
    inputs: Sequence[tuple[int, ...]]
    reads: Sequence[tuple[int, ...]]
    around: Sequence[int] = ()
    beside: Sequence[int] = ()

    @property
    def n_values(self) -> int:
        """The number of values."""
        return len(self.sizes)

    def bytes_around(self, value: int) -> int:
        """Return the bytes of other memory while a value is computed the first time."""
        return self.around[value] if value < len(self.around) else 0

    def bytes_beside(self, step: int) -> int:
        """Return the bytes of other memory during a backward step."""
        return self.beside[step] if step < len(self.beside) else 0


def plain(program: Program) -> Schedule:
    """Return the schedule without recomputation."""
    return ((),) * len(program.reads)


def events(program: Program, schedule: Schedule) -> list[tuple[int, tuple[int, ...], int]]:
    """List the computations of a schedule, in order.

    Returns
    -------
    list of (int, tuple of int, int)
        The value that is computed, -1 for a step back; the values read; bytes of other memory.
    """
    found = [(value, tuple(inputs), program.bytes_around(value))
             for value, inputs in enumerate(program.inputs)]
    for step, (values, reads) in enumerate(zip(schedule, program.reads, strict=True)):
        beside = program.bytes_beside(step)
        found += [(value, tuple(program.inputs[value]), beside) for value in values]
        found.append((-1, tuple(reads), beside))
    return found


def peak_of(program: Program, schedule: Schedule) -> int:
    """Return the peak of the bytes in memory; raise if a value is read before it is computed.

    Examples
    --------
    Three values, each of the one before; steps back that read the one and the other:

    >>> program = Program((4, 4, 4), (1, 1, 1), ((), (0,), (1,)), ((2,), (1,), (0,)))
    >>> peak_of(program, plain(program)), peak_of(program, ((), (0, 1), ()))
    (12, 8)
    """
    live = live_bytes(program, schedule)
    return max(live, default=0)


def live_bytes(program: Program, schedule: Schedule) -> list[int]:
    """Return the bytes in memory at each of `events`."""
    order, sizes = events(program, schedule), program.sizes
    freed = [0] * len(order)  # bytes of the values last read there
    wanted: set[int] = set()
    for place in reversed(range(len(order))):
        made, reads, _ = order[place]
        if made >= 0 and made not in wanted:
            freed[place] += sizes[made]  # without readers
        wanted.discard(made)
        for value in reads:
            if value not in wanted:
                wanted.add(value)
                freed[place] += sizes[value]
    if wanted:
        raise ValueError(f"values {sorted(wanted)} are read before they are computed")
    live, found = 0, []
    for (made, _, beside), freed_here in zip(order, freed, strict=True):
        if made >= 0:
            live += sizes[made]
        found.append(live + beside)
        live -= freed_here
    return found


def cost_of(program: Program, schedule: Schedule) -> float:
    """Return the time of a schedule's recomputations."""
    return sum((program.costs[value] for values in schedule for value in values), 0.0)


def can_run_again(program: Program, value: int) -> bool:
    """Return whether a value may be computed more than once."""
    return program.costs[value] != inf


def without_unread(program: Program, schedule: Schedule) -> Schedule:
    """Return a schedule without recomputations that have no readers."""
    found: list[tuple[int, ...]] = []
    wanted: set[int] = set()
    for values, reads in zip(reversed(schedule), reversed(program.reads), strict=True):
        wanted.update(reads)
        read = []
        for value in reversed(values):
            if value in wanted:
                wanted.discard(value)
                wanted.update(program.inputs[value])
                read.append(value)
        found.append(tuple(reversed(read)))
    return tuple(reversed(found))
