"""Schedules: functions of the number of steps done that return the learning rate of the next one.

Any function of an integer that returns a number is a schedule; these make the usual ones.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable, Sequence

from cytape.optimizers.parameter_checks import checked, require_number

__all__ = [
    "constant_schedule", "cosine_schedule", "exponential_schedule", "step_schedule",
    "warmup_schedule"]

Schedule = Callable[[int], float]


def constant_schedule(rate: float) -> Schedule:
    """Return a schedule of one rate.

    Examples
    --------
    >>> from cytape.optimizers import constant_schedule
    >>> constant_schedule(0.1)(1000)
    0.1
    """
    return lambda step: rate


def step_schedule(boundaries: Sequence[int], rates: Sequence[float]) -> Schedule:
    """Return a schedule of several rates, one after the other.

    Parameters
    ----------
    boundaries : sequence of int
        Increasing numbers of steps: after so many the next rate follows.
    rates : sequence of float
        One more than boundaries.

    Raises
    ------
    ValueError
        If the boundaries do not increase, or the numbers do not fit.

    Examples
    --------
    >>> from cytape.optimizers import step_schedule
    >>> schedule = step_schedule([100, 200], [0.1, 0.01, 0.001])
    >>> schedule(99), schedule(100), schedule(500)
    (0.1, 0.01, 0.001)
    """
    boundaries, rates = list(boundaries), list(rates)
    if len(rates) != len(boundaries) + 1:
        raise ValueError(f"{len(boundaries)} boundaries need {len(boundaries) + 1} rates, got "
                         f"{len(rates)}")
    if sorted(set(boundaries)) != boundaries:
        raise ValueError(f"boundaries must increase, got {boundaries}")
    return lambda step: rates[bisect.bisect_right(boundaries, step)]


def exponential_schedule(rate: float, steps: int, factor: float) -> Schedule:
    """Return a schedule that multiplies the rate by `factor` in every `steps` steps, gradually.

    Examples
    --------
    >>> from cytape.optimizers import exponential_schedule
    >>> exponential_schedule(0.1, steps=10, factor=0.5)(20)
    0.025
    """
    _require_steps(steps)
    checked("factor", factor, 0.0, math.inf)
    require_number("rate", rate)
    return lambda step: rate * factor ** (step / steps)


def cosine_schedule(rate: float, steps: int, final: float = 0.0, warmup: int = 0) -> Schedule:
    """Return a schedule that falls from `rate` to `final` along half a period of a cosine.

    Parameters
    ----------
    rate : float
    steps : int
        The number of all steps; after them the rate is `final`.
    final : float, optional
    warmup : int, optional
        The number of first steps in which the rate rises linearly to `rate`, below `steps`.

    Examples
    --------
    >>> from cytape.optimizers import cosine_schedule
    >>> schedule = cosine_schedule(1.0, steps=10, warmup=2)
    >>> [round(schedule(step), 3) for step in (0, 1, 2, 6, 10, 11)]
    [0.5, 1.0, 1.0, 0.5, 0.0, 0.0]
    """
    _require_steps(steps)
    require_number("rate", rate)
    if not 0 <= warmup < steps:
        raise ValueError(f"warmup must be at least 0 and below steps = {steps}, got {warmup}")

    def falling(step: int) -> float:
        part = min(step / (steps - warmup), 1.0)
        return final + (rate - final) * 0.5 * (1.0 + math.cos(math.pi * part))

    return warmup_schedule(falling, warmup) if warmup else falling


def warmup_schedule(schedule: float | Schedule, steps: int) -> Schedule:
    """Return a schedule that rises linearly for some steps, and then follows another one.

    Parameters
    ----------
    schedule : float or callable
        The rate after the rise; a schedule is called with the number of steps since.
    steps : int
        The number of steps of the rise.

    Examples
    --------
    >>> from cytape.optimizers import warmup_schedule
    >>> schedule = warmup_schedule(0.1, 4)
    >>> schedule(0), schedule(3), schedule(100)
    (0.025, 0.1, 0.1)
    """
    _require_steps(steps)
    later = schedule if callable(schedule) else constant_schedule(schedule)
    return lambda step: (
        later(0) * (step + 1) / steps if step < steps else later(step - steps))


def _require_steps(steps: int) -> None:
    if not steps > 0:
        raise ValueError(f"steps must be positive, got {steps}")
