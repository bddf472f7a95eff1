"""Schedules by dynamic programming over cuts of a program.

A cut after some value separates the values computed up to it from later ones. Its *frontier* is
the set of earlier values that later values, and their backward steps, read. There are two ways to
go back from cut t to cut s with the frontier of s in memory. First: compute from s to a cut j
between, keep the frontier of j, go back from t to j and through the steps that read only this
frontier, drop it, and go back from j to s. Second: compute from s to the next cut, keep all values
that its backward steps read, go back from t to there, and then to s without recomputation. The best
way for every s, t and number of bytes is stored in one table.

On a chain, where each value is computed from the one before, this is the dynamic program of Chen et
al. (2016) as Beaumont, Herrmann and others made it exact for unequal sizes and times ("rotor").
Frontiers are single values there, and it is optimal among the schedules that keep a frontier until
they have come back to it. On other graphs frontiers are sets and the order of values is fixed: a
heuristic. With more than `MOST_CUTS` values only some cuts count, those with the smallest frontiers
in pieces of about equal size.
"""

from __future__ import annotations

from math import gcd

import numpy as np

from cytape.graph.checkpoint.cut_table import filled
from cytape.graph.checkpoint.recompute_schedule import (
    Program,
    Schedule,
    can_run_again,
    without_unread,
)

__all__ = ["Cuts"]

MOST_CUTS = 64
MOST_LEVELS = 400  # levels of bytes


class Cuts:
    """The table for a program.

    Parameters
    ----------
    program : Program
    most_bytes : int
        Budgets do not exceed this.

    Attributes
    ----------
    levels : ndarray of int
        Budgets, ascending, beside the schedules that they allow.
    seconds : ndarray of float
        Time of the recomputations, by level; infinite if there is no schedule.

    Examples
    --------
    >>> program = Program((4, 4, 4), (1, 1, 1), ((), (0,), (1,)), ((2,), (1,), (0,)))
    >>> cuts = Cuts(program, 12)
    >>> cuts.levels.tolist(), cuts.seconds.tolist()
    ([0, 4, 8, 12], [inf, inf, 1.0, 0.0])
    >>> cuts.schedule(8)
    ((), (), (0,))
    """

    def __init__(self, program: Program, most_bytes: int) -> None:
        self.program = program
        self.n = program.n_values
        self._find_positions()
        bounds = self.bounds = self._chosen_cuts()
        n_cuts = len(bounds)  # cut k is before value bounds[k]
        sizes = [int(size) for size in program.sizes]
        numbers = [*sizes, *map(int, program.beside), *map(int, program.around), int(most_bytes)]
        unit = gcd(*numbers) or 1
        self.unit = unit = max(unit, -(-most_bytes // MOST_LEVELS))
        self.n_levels = most_bytes // unit + 1
        self.levels = np.arange(self.n_levels) * unit
        # Bytes of values before a cut that are computed after another one, and so on: rounded up.
        self.between = np.zeros((n_cuts, n_cuts), np.int64)
        self.advance = np.zeros((n_cuts, n_cuts), np.int64)
        self.first = np.zeros((n_cuts, n_cuts), np.int64)
        self.time = np.zeros(n_cuts)
        self._measure(sizes)
        self._fill()

    # ---- the program's cuts

    def _find_positions(self) -> None:
        """Assign backward steps to values, and find the last use of each value."""
        program, n = self.program, self.n
        # A step belongs to the last value that it or a later one reads.
        self.steps: list[list[int]] = [[] for _ in range(n)]
        self.unbound: list[int] = []
        last = -1
        for step in reversed(range(len(program.reads))):
            last = max(last, *program.reads[step], -1)
            (self.steps[last] if last >= 0 else self.unbound).append(step)
        for steps in self.steps:
            steps.reverse()
        self.read_at = [sorted({value for step in steps for value in program.reads[step]})
                        for steps in self.steps]
        # The last position at which each value is read; -1: never.
        self.until = [-1] * n
        for position in range(n):
            for value in self.read_at[position]:
                self.until[value] = max(self.until[value], position)
        for value, inputs in enumerate(program.inputs):
            for other in inputs:
                self.until[other] = max(self.until[other], value)
        for value in range(n):
            if not can_run_again(program, value):
                self.until[value] = max(self.until[value], n - 1) if self.until[value] >= 0 else -1

    def _passing(self) -> list[int]:
        """Return the bytes of the frontier before each value, and at the end."""
        change = np.zeros(self.n + 2, np.int64)
        for value, until in enumerate(self.until):
            if until > value:
                change[value + 1] += self.program.sizes[value]
                change[until + 1] -= self.program.sizes[value]
        return np.cumsum(change)[: self.n + 1].tolist()

    def _chosen_cuts(self) -> list[int]:
        n = self.n
        if n <= MOST_CUTS:
            return list(range(n + 1))
        passing = self._passing()
        total = np.cumsum([0, *(size + 1 for size in self.program.sizes)])
        found = {0, n}
        pieces = np.searchsorted(total, np.linspace(0, total[-1], MOST_CUTS)).tolist()
        for start, stop in zip(pieces, pieces[1:], strict=False):
            if stop > start:
                found.add(min(range(start, min(stop, n)), key=passing.__getitem__))
        return sorted(found)

    def _measure(self, sizes: list[int]) -> None:
        program, bounds = self.program, self.bounds
        n_cuts, unit = len(bounds), self.unit
        peaks = np.zeros((n_cuts, n_cuts), np.int64)
        firsts = np.zeros((n_cuts, n_cuts), np.int64)
        # kept[k]: bytes that values of block k - 1 take until their own steps back.
        self.kept = np.zeros(n_cuts, np.int64)
        self.inside = np.zeros(n_cuts, np.int64)
        self.inside_first = np.zeros(n_cuts, np.int64)
        ends: list[list[int]] = [[] for _ in sizes]  # by value: values whose last use is there
        for value, until in enumerate(self.until):
            ends[max(until, value)].append(value)
        around = list(map(program.bytes_around, range(self.n)))
        # Values that are computed once are in memory from the beginning of each recomputation.
        again = [0 if until >= 0 and not can_run_again(program, value) else sizes[value]
                 for value, until in enumerate(self.until)]
        before = np.cumsum([0, *np.subtract(sizes, again)])[bounds]
        fixed = np.triu(before[None, :] - before[:, None])
        for s in range(n_cuts - 1):
            live = live_again = most = most_first = 0
            for k in range(s, n_cuts - 1):
                for value in range(bounds[k], bounds[k + 1]):
                    live += sizes[value]
                    live_again += again[value]
                    most, most_first = max(most, live_again), max(most_first, live + around[value])
                    for other in ends[value]:
                        if other >= bounds[s]:
                            live -= sizes[other]
                            live_again -= again[other]
                peaks[s, k + 1], firsts[s, k + 1] = most + fixed[s, k + 1], most_first
                self.between[s, k + 1] = -(-live // unit)
        self.advance, self.first = -(-peaks // unit), -(-firsts // unit)
        self.fixed = -(-fixed // unit)
        self.beside = np.zeros(n_cuts, np.int64)
        self.down = np.arange(n_cuts)
        self.beside_down = np.zeros(n_cuts, np.int64)
        self.has_steps = [False] + [
            any(self.steps[start:stop])
            for start, stop in zip(bounds, bounds[1:], strict=False)]
        for k in range(1, n_cuts):
            block = range(bounds[k - 1], bounds[k])
            read = {value for position in block for value in self.read_at[position]
                    if value >= bounds[k - 1]}
            stay = {value for value in block if value in read or self.until[value] >= bounds[k]}
            kept = sum(sizes[value] for value in stay)
            live = live_again = most = most_first = 0
            for value in block:
                live += sizes[value]
                live_again += again[value]
                most, most_first = max(most, live_again), max(most_first, live + around[value])
                for other in ends[value]:
                    if other >= bounds[k - 1] and other not in stay:
                        live -= sizes[other]
                        live_again -= again[other]
            most += fixed[k - 1, k]
            self.kept[k] = -(-kept // unit)
            self.inside[k], self.inside_first[k] = -(-most // unit), -(-most_first // unit)
            self.beside[k] = -(-max((program.bytes_beside(step) for position in block
                                     for step in self.steps[position]), default=0) // unit)
            # The cut that steps reach by reading only the frontier of a cut.
            down, most = k, 0
            while down and all(
                    value < bounds[k] and self.until[value] >= bounds[k]
                    for position in range(bounds[down - 1], bounds[down])
                    for value in self.read_at[position]):
                down -= 1
                most = max(most, int(self.beside[down + 1]))
            self.down[k], self.beside_down[k] = down, most
            costs = [program.costs[value] for value in block]
            self.time[k] = self.time[k - 1] + sum(
                cost for value, cost in zip(block, costs, strict=True)
                if can_run_again(program, value))

    # ---- the table

    def _fill(self) -> None:
        _, self._ways, seconds, self._first_ways = filled(
            self.n_levels, self.time, np.array(self.has_steps, np.int8), self.down, self.between,
            self.advance, self.first, self.kept, self.inside, self.inside_first, self.beside,
            self.beside_down, self.fixed)
        self.seconds = seconds[0]
        least = -(-max((self.program.bytes_beside(step) for step in self.unbound),
                       default=0) // self.unit)
        self.seconds[:least] = np.inf

    # ---- schedules of the table

    def schedule(self, budget: int) -> Schedule | None:
        """Return the fastest schedule in the table within a budget, None if there is none."""
        level = min(int(budget) // self.unit, self.n_levels - 1)
        if level < 0 or not np.isfinite(self.seconds[level]):
            return None
        found: list[list[int]] = [[] for _ in self.program.reads]
        last = len(self.bounds) - 1
        # (from, to, level, whether for the first time), the next one to go back through last
        pending: list[tuple[int, int, int, bool]] = [(0, last, level, True)]
        values: list[int] = []  # computed before the next step back
        while pending:
            s, t, level, is_first = pending.pop()
            while s < t and not is_first and not self.has_steps[t]:
                t -= 1
            if s == t:
                continue
            way = int(self._first_ways[s, level] if is_first else self._ways[s, t, level])
            j = s + max(way, 1)
            if not is_first:
                values += [value for value in range(self.bounds[s], self.bounds[j])
                           if can_run_again(self.program, value)]
            if way == 0:
                pending.append((s, -j, 0, False))
                pending.append((j, t, level - int(self.kept[j]), is_first))
            else:
                down = max(self.down[j], s)
                pending.append((s, down, level, False))
                pending.append((down, -j, 0, False))
                pending.append((j, t, level - int(self.between[s, j]), is_first))
            while pending and pending[-1][1] <= 0 or pending and pending[-1][0] == pending[-1][1]:
                s, t, *_ = pending.pop()
                if t < 0:
                    values = self._gone_back(s, -t, values, found)
        return without_unread(self.program, tuple(map(tuple, found)))

    def _gone_back(
        self, s: int, t: int, values: list[int], found: list[list[int]]
    ) -> list[int]:
        """Note the values computed before the steps of a block; return the remaining ones."""
        for position in reversed(range(self.bounds[s], self.bounds[t])):
            for step in self.steps[position]:
                found[step] += values
                values = []
        return values
