"""Which schedule to take: the fastest within so many bytes, or a curve of them.

Programs of up to `MOST_SEARCHED` values are searched, which finds the best there is (`search`). For
larger ones the schedules over cuts are taken (`cuts`), and made better (`improving`).
"""

from __future__ import annotations

from typing import NamedTuple

from cytape.graph.checkpoint.cuts import Cuts
from cytape.graph.checkpoint.improving import improved
from cytape.graph.checkpoint.schedules import Program, Schedule, cost_of, peak_of, plain
from cytape.graph.checkpoint.search import search

__all__ = ["Planner", "Point"]

MOST_SEARCHED = 15   # values
MOST_STATES = 10_000
MOST_POINTS = 12     # of a curve
MOST_EFFORT = 10_000  # events that are gone through to make one schedule better


class Point(NamedTuple):
    """A schedule of a curve.

    Attributes
    ----------
    peak : int
        Bytes.
    seconds : float
        Of what is computed again.
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
    (19, 85.0)
    """

    def __init__(self, program: Program) -> None:
        self.program = program
        self.plain_peak = peak_of(program, plain(program))
        self._cuts: Cuts | None = None
        self._curve: list[Point] | None = None

    @property
    def cuts(self) -> Cuts:
        """The schedules over cuts."""
        if self._cuts is None:
            self._cuts = Cuts(self.program, self.plain_peak)
        return self._cuts

    def fastest(self, budget: int) -> Point | None:
        """Return the fastest schedule that is found within so many bytes.

        Parameters
        ----------
        budget : int

        Returns
        -------
        Point or None
            None if none was found.
        """
        if budget >= self.plain_peak:
            return self._point(plain(self.program))
        if self.program.n_values <= MOST_SEARCHED:
            try:
                found = search(self.program, budget, MOST_STATES)
                return None if found is None else self._point(found)
            except TimeoutError:
                pass
        schedule = self.cuts.schedule(budget)
        if schedule is None:
            return None
        n_events = self.program.n_values + len(self.program.reads)
        return self._point(improved(
            self.program, schedule, budget, MOST_EFFORT // max(n_events, 1)))

    def smallest(self) -> int:
        """Return the fewest bytes for which a schedule is found."""
        fewest, enough = 0, self.plain_peak
        if self.program.n_values > MOST_SEARCHED:
            feasible = self.cuts.seconds < float("inf")
            if feasible.any():
                enough = int(self.cuts.levels[int(feasible.argmax())])
            return min(self.plain_peak, enough)
        while fewest + 1 < enough:
            budget = (fewest + enough) // 2
            point = self.fastest(budget)
            if point is None:
                fewest = budget
            else:
                enough = point.peak
        return enough

    def curve(self) -> list[Point]:
        """List schedules from the fastest to the smallest, each smaller than those before it."""
        if self._curve is None:
            least, most = self.smallest(), self.plain_peak
            ratio = (max(least, 1) / max(most, 1)) ** (1 / MOST_POINTS)
            budgets = {round(most * ratio**i) for i in range(1, MOST_POINTS)} | {least, most}
            points = [point for budget in budgets if (point := self.fastest(budget)) is not None]
            points.sort(key=lambda point: (point.seconds, point.peak))
            curve: list[Point] = []
            for point in points:
                if not curve or point.peak < curve[-1].peak:
                    curve.append(point)
            self._curve = curve
        return self._curve

    def _point(self, schedule: Schedule) -> Point:
        return Point(
            peak_of(self.program, schedule), cost_of(self.program, schedule), schedule)
