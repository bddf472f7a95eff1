"""Schedules made better step by step, within a budget.

A value that a schedule computes again may as well have stayed in memory since it was there last, if
there is room. So each one is tried, the most expensive first, until none is left that can stay.
"""

from __future__ import annotations

import numpy as np

from cytape.graph.checkpoint.schedules import Program, Schedule, events, live_bytes

__all__ = ["improved"]


def improved(program: Program, schedule: Schedule, budget: int, most_trials: int) -> Schedule:
    """Return a schedule that computes fewer values again, if one is found.

    Parameters
    ----------
    program : Program
    schedule : Schedule
        Whose peak is within the budget, and which computes nothing that is not read.
    budget : int
    most_trials : int
        Of leaving out something.

    Returns
    -------
    Schedule

    Examples
    --------
    >>> program = Program((4, 4, 4), (1, 1, 1), ((), (0,), (1,)), ((2,), (1,), (0,)))
    >>> improved(program, ((), (0, 1), (0,)), 12, 100)
    ((), (), ())
    """
    copies = _Copies(program, schedule)
    places = sorted(copies.again, key=lambda place: -program.costs[copies.made[place]])
    trials, found_any = 0, True
    while found_any:
        found_any = False
        for place in places:
            if place in copies.again and trials < most_trials:
                trials += 1
                found_any |= copies.leave_out(place, budget)
    return copies.schedule()


class _Copies:
    """The copies of values that a schedule makes, by the place where each is made.

    Parameters
    ----------
    program : Program
    schedule : Schedule

    Attributes
    ----------
    made : list of int
        By place: the value, or -1 where a step goes back.
    again : set of int
        The places where a value is computed again.
    """

    def __init__(self, program: Program, schedule: Schedule) -> None:
        order = events(program, schedule)
        self._program = program
        self.made = [made for made, _, _ in order]
        self.again = {
            place for place in range(program.n_values, len(order)) if self.made[place] >= 0}
        self._live = np.array(live_bytes(program, schedule), np.int64)
        self._reads: list[list[int]] = []  # by place: copies
        self._readers: list[list[int]] = [[] for _ in order]  # by copy: places, in order
        self._before = [-1] * len(order)  # by copy: the one of the same value before it, and after
        self._after = [-1] * len(order)
        present: dict[int, int] = {}
        for place, (made, reads, _) in enumerate(order):
            self._reads.append([present[value] for value in set(reads)])
            for copy in self._reads[place]:
                self._readers[copy].append(place)
            if made >= 0:
                self._link(present.get(made, -1), place)
                present[made] = place

    def leave_out(self, copy: int, budget: int) -> bool:
        """Have the copy before stay instead, if there is room; what was made for this one goes."""
        before = self._before[copy]
        start, size = self._last(before) + 1, self._program.sizes[self.made[copy]]
        gone = [copy]
        left: dict[int, list[int]] = {}  # the readers of what is read there, without what is gone
        for place in gone:
            for read in self._reads[place]:
                left.setdefault(read, list(self._readers[read])).remove(place)
                if not left[read] and read in self.again:
                    gone.append(read)
        all_gone = set(gone)
        freed = [(read if read in all_gone else self._last(read, readers) + 1, self._last(read) + 1,
                  self._program.sizes[self.made[read]]) for read, readers in left.items()]
        live = self._live[start:copy] + size
        for first, end, freed_size in freed:
            live[max(first - start, 0) : max(end - start, 0)] -= freed_size
        live[[place - start for place in gone if start <= place < copy]] = 0
        if live.max(initial=0) > budget:
            return False
        for first, end, freed_size in freed:
            self._live[first:end] -= freed_size
        self._live[start:copy] = live
        self._live[gone] = 0
        for place in self._readers[copy]:
            reads = self._reads[place]
            reads[reads.index(copy)] = before
        self._readers[before] += self._readers[copy]
        for read, readers in left.items():
            self._readers[read] = readers
        for place in gone:
            self._link(self._before[place], self._after[place])
        self.again.difference_update(gone)
        return True

    def _last(self, copy: int, readers: list[int] | None = None) -> int:
        """Return the place where a copy is read last."""
        readers = self._readers[copy] if readers is None else readers
        return readers[-1] if readers else copy

    def _link(self, before: int, after: int) -> None:
        if before >= 0:
            self._after[before] = after
        if after >= 0:
            self._before[after] = before

    def schedule(self) -> Schedule:
        """Return what is left."""
        found: list[tuple[int, ...]] = []
        values: list[int] = []
        for place in range(self._program.n_values, len(self.made)):
            if self.made[place] < 0:
                found.append(tuple(values))
                values = []
            elif place in self.again:
                values.append(self.made[place])
        return tuple(found)
