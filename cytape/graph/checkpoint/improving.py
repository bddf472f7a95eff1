"""Schedules made better step by step, within a budget.

A value that a schedule computes again may as well have stayed in memory since it was there last, if
there is room. So each one is tried, the most expensive first, until none is left that can stay.
"""

from __future__ import annotations

from cytape.graph.checkpoint.schedules import Program, Schedule, peak_of, without_unread

__all__ = ["improved"]


def improved(program: Program, schedule: Schedule, budget: int, most_trials: int) -> Schedule:
    """Return a schedule that computes fewer values again, if one is found.

    Parameters
    ----------
    program : Program
    schedule : Schedule
        Whose peak is within the budget.
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
    trials = 0
    found_any = True
    while found_any:
        found_any = False
        places = sorted(
            ((step, place) for step, values in enumerate(schedule) for place in range(len(values))),
            key=lambda at: -program.costs[schedule[at[0]][at[1]]])
        tried = set()
        for step, place in places:
            if step >= len(schedule) or place >= len(schedule[step]) or trials >= most_trials:
                continue
            value = schedule[step][place]
            if (step, value) in tried:
                continue
            tried.add((step, value))
            trials += 1
            fewer = list(schedule)
            fewer[step] = schedule[step][:place] + schedule[step][place + 1 :]
            shorter = without_unread(program, tuple(fewer))
            if peak_of(program, shorter) <= budget:
                schedule, found_any = shorter, True
    return schedule
