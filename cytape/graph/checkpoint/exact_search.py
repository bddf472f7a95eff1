"""Exhaustive search for the fastest schedule within a budget, for programs of few values.

A state is the stage (number of values computed and of steps taken back) and the set of values in
memory. Transitions: the next value or step, a recomputed value, and a value that is freed if the
next one does not fit. The search is A*: the remaining time is at least that of values that steps
will read and that are not in memory. This bound is admissible, so the result is optimal.
"""

from __future__ import annotations

from heapq import heappop, heappush
from math import inf

from cytape.graph.checkpoint.recompute_schedule import Program, Schedule, can_run_again

__all__ = ["search"]


def search(program: Program, budget: int, most_states: int) -> Schedule | None:
    """Return the fastest schedule whose peak is within a budget.

    Parameters
    ----------
    program : Program
    budget : int
        In bytes.
    most_states : int
        How many states to look at.

    Returns
    -------
    Schedule or None
        None if there is none.

    Raises
    ------
    TimeoutError
        If it was not found among this number of states.

    Examples
    --------
    >>> program = Program((4, 4, 4), (1, 1, 1), ((), (0,), (1,)), ((2,), (1,), (0,)))
    >>> search(program, 8, 1000)
    ((), (), (0,))
    >>> search(program, 7, 1000) is None
    True
    """
    return _Search(program, budget).run(most_states)


class _Search:
    """Search state: sets of values are bits of integers; the stage counts values, then steps."""

    def __init__(self, program: Program, budget: int) -> None:
        self.program, self.budget = program, budget
        self.n = n = program.n_values
        self.inputs = [_mask(values) for values in program.inputs]
        self.reads = [_mask(values) for values in program.reads]
        # Values that something computed for the first time reads, from each value on.
        self.forward = [0] * (n + 1)
        for value in reversed(range(n)):
            self.forward[value] = self.forward[value + 1] | self.inputs[value]
        # Values that steps read, and their ancestors, from each step on.
        self.direct = [0] * (len(self.reads) + 1)
        for step in reversed(range(len(self.reads))):
            self.direct[step] = self.direct[step + 1] | self.reads[step]
        self.beside_later = [
            max(map(program.bytes_beside, range(step + 1, len(self.reads))), default=0)
            for step in range(len(self.reads))]
        self.useful = [self._ancestors(mask) for mask in self.direct]
        self.costs: dict[int, float] = {}

    def _ancestors(self, mask: int) -> int:
        for value in reversed(range(self.n)):
            if mask >> value & 1:
                mask |= self.inputs[value]
        return mask

    def run(self, most_states: int) -> Schedule | None:
        n, n_stages = self.n, self.n + len(self.reads)
        start = (0, 0, 0)  # stage, values, bytes
        best = {start: 0.0}
        origins: dict[tuple[int, int, int], tuple] = {}
        pending = [(0.0, 0, 0.0, start)]
        n_states = 0
        while pending:
            _, _, time, state = heappop(pending)
            if time > best[state]:
                continue
            stage = state[0]
            if stage == n_stages:
                return self.traced(origins, state)
            n_states += 1
            if n_states > most_states:
                raise TimeoutError(f"no schedule was found among {most_states} states")
            for computed, cost, following in self.moves(state):
                total = time + cost
                if total < best.get(following, inf):
                    best[following] = total
                    origins[following] = (state, computed)
                    later, values, _ = following
                    missing = self.direct[later - n] & ~values if later >= n else 0
                    estimate = total + self.cost(missing)
                    if estimate < inf:
                        heappush(pending, (estimate, -later, total, following))
        return None

    def moves(self, state: tuple[int, int, int]) -> list:
        """List the transitions: a recomputed value or -1, its time, the state."""
        stage, values, used = state
        program, n = self.program, self.n
        found, full = [], False
        if stage < n:
            may_go = values & ~self.forward[stage]
            size = program.sizes[stage]
            full = used + size + program.bytes_around(stage) > self.budget
            if not full:
                found.append((-1, 0.0, (stage + 1, values | 1 << stage, used + size)))
        else:
            step, may_go = stage - n, values
            beside = program.bytes_beside(step)
            if not self.reads[step] & ~values:
                full = used + beside > self.budget
                if not full:
                    kept = values & self.useful[step + 1]
                    found.append((-1, 0.0, (stage + 1, kept, self.bytes(kept))))
                    if beside >= self.beside_later[step]:
                        return found  # everything else can wait
            for value in _bits(self.useful[step] & ~values):
                if self.inputs[value] & ~values or not can_run_again(program, value):
                    continue
                size = program.sizes[value]
                if used + size + beside > self.budget:
                    full = True
                else:
                    found.append((value, program.costs[value],
                                  (stage, values | 1 << value, used + size)))
        if full:
            for value in _bits(may_go):
                found.append(
                    (-1, 0.0, (stage, values & ~(1 << value), used - program.sizes[value])))
        return found

    def bytes(self, mask: int) -> int:
        return sum(self.program.sizes[value] for value in _bits(mask))

    def cost(self, mask: int) -> float:
        found = self.costs.get(mask)
        if found is None:
            found = self.costs[mask] = sum(self.program.costs[value] for value in _bits(mask))
        return found

    def traced(self, origins: dict, state: tuple[int, int, int]) -> Schedule:
        steps: list[list[int]] = [[] for _ in self.reads]
        while state in origins:
            before, computed = origins[state]
            if computed >= 0:
                steps[state[0] - self.n].append(computed)
            state = before
        return tuple(tuple(reversed(values)) for values in steps)


def _mask(values: tuple[int, ...]) -> int:
    mask = 0
    for value in values:
        mask |= 1 << value
    return mask


def _bits(mask: int) -> list[int]:
    found = []
    while mask:
        low = mask & -mask
        found.append(low.bit_length() - 1)
        mask ^= low
    return found
