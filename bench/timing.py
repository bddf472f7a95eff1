"""Timing of two or more programs against each other, in one process and in turns."""

import gc
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Program:
    """A timed function `run`, and `setup`, which makes its argument."""

    run: Callable[[Any], Any]
    setup: Callable[[], Any] = lambda: None


@dataclass(frozen=True)
class Effort:
    """Number of rounds, and the seconds that a program runs in each."""

    rounds: int
    seconds: float


def best_seconds(programs, effort):
    """Return the shortest time of one run of each program.

    The programs take turns, so that a slow spell of the machine hits them alike, and stay for a
    while when it is their turn, so that each finds its own data in the caches. The garbage
    collector is off while they run: only reference counts free memory.
    """
    best = [float("inf")] * len(programs)
    for _ in range(effort.rounds):
        for i, program in enumerate(programs):
            gc.collect()
            gc.disable()
            try:
                best[i] = min(best[i], _best_of_turn(program, effort.seconds))
            finally:
                gc.enable()
    return best


def _best_of_turn(program, seconds):
    best = float("inf")
    end = time.perf_counter() + seconds
    while best == float("inf") or time.perf_counter() < end:
        subject = program.setup()
        start = time.perf_counter()
        program.run(subject)
        best = min(best, time.perf_counter() - start)
        del subject
    return best
