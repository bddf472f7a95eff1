"""Choice of a schedule: the fastest within a budget, or a curve of them.

Programs of up to `MOST_SEARCHED` values are searched exhaustively (`exact_search`). For larger
ones, schedules over cuts (`cuts`) are improved by a local search (`local_search`).
"""

from __future__ import annotations

from math import inf
from typing import NamedTuple

from cytape.graph.checkpoint.cuts import Cuts
from cytape.graph.checkpoint.exact_search import search
from cytape.graph.checkpoint.local_search import improved
from cytape.graph.checkpoint.recompute_schedule import (
    Program,
    Schedule,
    can_run_again,
    cost_of,
    events,
    peak_of,
    plain,
    without_unread,
)

__all__ = ["Planner", "Point"]

MOST_SEARCHED = 15   # values
MOST_STATES = 4000
MOST_POINTS = 12     # of a curve
FINE = 4             # schedules between two of these points
MOST_TRIALS = 1000   # to improve one schedule
SHARES = 0.9, 0.8, 0.7  # parts of a budget, whose schedules are improved within the whole budget


class Point(NamedTuple):
    """A schedule of a curve.

    Attributes
    ----------
    peak : int
        Bytes.
    seconds : float
        Time of the recomputations.
    schedule : Schedule
    """

    peak: int
    seconds: float
    schedule: Schedule


class Planner:
    """Schedules for a program.

    Parameters
    ----------
    program : Program

    Attributes
    ----------
    plain_peak : int
        Bytes, if nothing is computed again.

    Examples
    --------
    >>> n = 100
    >>> planner = Planner(Program(
    ...     [1] * n, [1.0] * n, [(), *((i,) for i in range(n - 1))],
    ...     [(i,) for i in reversed(range(n))]))
    >>> planner.plain_peak
    100
    >>> point = planner.fastest(19)
    >>> point.peak, point.seconds
    (19, 81.0)
    """

    def __init__(self, program: Program) -> None:
        self.program = program
        self.plain_peak = peak_of(program, plain(program))
        self._cuts: dict[int, Cuts] = {}  # by the largest number of bytes in each
        self._steps: list[int] | None = None
        self._points: dict[int, Point] = {}
        self._smallest: Point | None = None

    def _cuts_for(self, budget: int) -> Cuts:
        """Return the table of schedules over cuts for about this number of bytes.

        A table has a few hundred levels of bytes; one up to the plain peak would be too coarse for
        small budgets.
        """
        most = self.plain_peak
        while most // 2 >= max(budget, 1):
            most //= 2
        if most not in self._cuts:
            self._cuts[most] = Cuts(self.program, most)
        return self._cuts[most]

    def fastest(self, budget: int) -> Point | None:
        """Return the fastest schedule found within a budget.

        Returns
        -------
        Point or None
            None if none was found.
        """
        if budget >= self.plain_peak:
            return self.point(plain(self.program))
        if self.program.n_values <= MOST_SEARCHED:
            try:
                found = search(self.program, budget, MOST_STATES)
                return None if found is None else self.point(found)
            except TimeoutError:
                pass
        return self._improved(budget, budget)

    def _improved(self, start: int, budget: int) -> Point | None:
        """Return a schedule within a budget, improved within a larger one."""
        schedule = self._cuts_for(start).schedule(start)
        if schedule is None:
            return None
        return self.point(improved(self.program, schedule, budget, MOST_TRIALS))

    def smallest(self) -> Point:
        """Return the schedule with the smallest peak that is found."""
        if self._smallest is None:
            point = self._least(self.point(plain(self.program)))
            point = min(point, self.fastest(point.peak) or point)
            if self.program.n_values <= MOST_SEARCHED:
                point = self._smallest_searched(point)
            self._smallest = point
        return self._smallest

    def _least(self, point: Point) -> Point:
        """Return the smallest schedule over cuts, or the given point if none is smaller.

        The next table rounds bytes in another way, so it may not have this schedule.
        """
        while True:
            cuts = self._cuts_for(point.peak)
            levels = cuts.levels[cuts.seconds < inf]
            schedule = cuts.schedule(levels[0]) if len(levels) else None
            if schedule is None or (smaller := self.point(schedule)).peak >= point.peak:
                return point
            point = smaller

    def _smallest_searched(self, point: Point) -> Point:
        """Return a smaller schedule than a point, by bisection to 0.001 of the plain peak."""
        program = self.program
        too_few = -1 + max((
            beside + sum(program.sizes[value] for value in {made, *reads} - {-1})
            for made, reads, beside in events(program, plain(program))), default=0)
        step = max(self.plain_peak // 1000, 1)
        budget = point.peak - step
        while budget > too_few:
            found = self.fastest(budget)
            if found is None:
                too_few = budget
            else:
                point = found
            budget = min((too_few + point.peak) // 2, point.peak - step)
        return point

    @property
    def n_points(self) -> int:
        """The number of schedules on the curve, some of which may be the same."""
        return len(self._budgets())

    def at(self, i: int) -> Point:
        """Return a schedule of the curve: the first keeps everything, the last is the smallest."""
        if i not in self._points:
            last = i == self.n_points - 1
            point = self.smallest() if last else self.fastest(self._budgets()[i])
            self._points[i] = self.at(i + 1) if point is None else point
        return self._points[i]

    def others(self, i: int) -> list[Point]:
        """List more schedules for the budget of a point; some may be faster."""
        budget = self._budgets()[i]
        points = [self._improved(int(share * budget), budget) for share in SHARES]
        return [point for point in points if point is not None]

    def _budgets(self) -> list[int]:
        if self._steps is None:
            least, most = self.smallest().peak, self.plain_peak
            n_steps = FINE * MOST_POINTS
            ratio = (max(least, 1) / max(most, 1)) ** (1 / n_steps)
            steps = {max(round(most * ratio**i), least) for i in range(1, n_steps)}
            self._steps = sorted(steps | {least, most}, reverse=True)
        return self._steps

    def curve(self) -> list[Point]:
        """List schedules from the fastest to the smallest, with decreasing peaks."""
        places = {*range(0, self.n_points, FINE), self.n_points - 1}
        points = sorted(map(self.at, places), key=lambda each: each[1::-1])
        curve: list[Point] = []
        for point in points:
            if not curve or point.peak < curve[-1].peak:
                curve.append(point)
        return curve

    def point(self, schedule: Schedule) -> Point:
        """Return a schedule with its peak and its time."""
        return Point(
            peak_of(self.program, schedule), cost_of(self.program, schedule), schedule)

    def keeping(self, kept: set[int]) -> Schedule:
        """Return the schedule that keeps some values and recomputes each other value once.

        Recomputed values stay until the last step that reads them before a step that reads a kept
        value.
        """
        program = self.program
        found: list[list[int]] = []
        made: set[int] = set()
        for reads in program.reads:
            values: list[int] = []
            if not kept.isdisjoint(reads):
                made = set()
            pending = sorted(set(reads) - kept - made)
            wanted: set[int] = set()
            while pending:
                value = pending.pop()
                if value not in wanted and can_run_again(program, value):
                    wanted.add(value)
                    pending += set(program.inputs[value]) - kept - made
            values = sorted(wanted)
            made |= wanted
            found.append(values)
        return without_unread(program, tuple(map(tuple, found)))
