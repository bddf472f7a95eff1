"""Values that can stay in memory after all."""

import random

from cytape.graph.checkpoint.local_search import improved
from cytape.graph.checkpoint.recompute_schedule import cost_of, peak_of, plain, without_unread
from tests.graph.checkpoint.programs import graph


def everything_again(program):
    """The schedule that computes all that a step reads, whatever is in memory."""
    found = []
    for reads in program.reads:
        wanted = set(reads)
        for value in reversed(range(program.n_values)):
            if value in wanted:
                wanted.update(program.inputs[value])
        found.append(tuple(sorted(wanted)))
    return tuple(found)


def test_never_worse_and_within_the_budget():
    rng = random.Random(0)
    for _ in range(30):
        program = graph(rng, 9)
        before = everything_again(program)
        budget = peak_of(program, before) + rng.randint(0, 10)
        after = improved(program, before, budget, 1000)
        assert peak_of(program, after) <= budget
        assert cost_of(program, after) <= cost_of(program, before)


def test_with_room_for_all_nothing_is_computed_again():
    rng = random.Random(1)
    for _ in range(10):
        program = graph(rng, 8)
        before = everything_again(program)
        budget = max(peak_of(program, before), peak_of(program, plain(program)))
        assert not any(improved(program, before, budget + 100, 1000))


def test_no_trials_no_change():
    program = graph(random.Random(2), 8)
    before = everything_again(program)
    assert improved(program, before, 10**6, 0) == before


def by_trying_again(program, schedule, budget):
    """Leave out one thing after the other, in the same order, and measure all anew each time."""
    found_any = True
    while found_any:
        found_any = False
        again = sorted(
            ((-program.costs[value], step, i) for step, values in enumerate(schedule)
             for i, value in enumerate(values)))
        for _, step, i in again:
            fewer = list(schedule)
            fewer[step] = schedule[step][:i] + schedule[step][i + 1 :]
            shorter = without_unread(program, tuple(fewer))
            if peak_of(program, shorter) <= budget:
                schedule, found_any = shorter, True
                break
    return schedule


def test_nothing_is_left_that_could_stay():
    rng = random.Random(3)
    for _ in range(60):
        program = graph(rng, rng.randint(3, 12))
        program = program._replace(beside=[rng.randint(0, 9) for _ in program.reads])
        before = without_unread(program, everything_again(program))
        budget = peak_of(program, before) + rng.randint(0, 12)
        after = improved(program, before, budget, 1000)
        assert peak_of(program, after) <= budget
        assert without_unread(program, after) == after
        assert by_trying_again(program, after, budget) == after
