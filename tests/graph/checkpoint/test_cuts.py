"""Dynamic programming over cuts, against one that is written for chains alone."""

import random

import numpy as np

from cytape.graph.checkpoint.cuts import MOST_CUTS, Cuts
from cytape.graph.checkpoint.recompute_schedule import Program, cost_of, peak_of, plain
from tests.cases import each
from tests.graph.checkpoint.programs import chain, graph


def seconds_of_chain(sizes, costs, budget):
    """By bytes up to the budget: the least time if each step back reads its own value.

    back[s, t]: from step t to step s + 1, with value s in memory beside the bytes.
    """
    n = len(sizes)
    levels = np.arange(budget + 1)

    def with_less(row, taken, needed):
        found = np.full(budget + 1, np.inf)
        found[taken:] = row[: budget + 1 - taken] if taken <= budget else []
        found[levels < needed] = np.inf
        return found

    def advanced(s, j):
        pairs = [sizes[i - 1] + sizes[i] for i in range(s + 2, j + 1)]
        return max([sizes[s + 1], *pairs])

    back = {(t, t): np.zeros(budget + 1) for t in range(-1, n)}
    for length in range(1, n + 1):
        for s in range(-1, n - length):
            t = s + length
            back[s, t] = np.min([
                sum(costs[s + 1 : j + 1]) + with_less(back[j, t], sizes[j], advanced(s, j))
                + back[s, j - 1] for j in range(s + 1, t + 1)], axis=0)
    first = {n - 1: np.zeros(budget + 1)}
    for s in reversed(range(-1, n - 1)):
        first[s] = np.min([
            with_less(first[j], sizes[j], advanced(s, j)) + back[s, j - 1]
            for j in range(s + 1, n)], axis=0)
    return first[-1]


@each("n, n_programs", [(4, 20), (12, 10), (50, 2)])
def test_equal_to_the_dynamic_program_for_chains(n, n_programs):
    rng = random.Random(n)
    for _ in range(n_programs):
        program = chain(rng, n, [(0,)])
        most = peak_of(program, plain(program))
        expected = seconds_of_chain(program.sizes, program.costs, most)
        cuts = Cuts(program, most)
        found = dict(zip(cuts.levels.tolist(), cuts.seconds.tolist(), strict=True))
        assert found == {level: expected[level] for level in found}
        assert len(found) == most + 1 or n < 12


@each("make", [chain, graph])
def test_schedules_are_what_the_table_says(make):
    rng = random.Random(1)
    for _ in range(20):
        program = make(rng, rng.randint(3, 14))
        most = peak_of(program, plain(program))
        cuts = Cuts(program, most)
        for budget, seconds in zip(cuts.levels.tolist(), cuts.seconds.tolist(), strict=True):
            schedule = cuts.schedule(budget)
            if np.isinf(seconds):
                assert schedule is None
            else:
                assert peak_of(program, schedule) <= budget
                assert cost_of(program, schedule) <= seconds
        assert cuts.seconds[-1] == 0 or make is graph


def test_many_values_are_put_together():
    n = 700
    program = Program([1000] * n, [1.0] * n, [(), *((i,) for i in range(n - 1))],
                      [(i,) for i in reversed(range(n))])
    cuts = Cuts(program, n * 1000)
    assert len(cuts.bounds) <= MOST_CUTS + 2
    for part in (0.05, 0.1, 0.5):
        schedule = cuts.schedule(int(part * n * 1000))
        assert peak_of(program, schedule) <= part * n * 1000
    assert cost_of(program, cuts.schedule(60_000)) <= 2 * n


def test_cuts_where_the_graph_is_narrow_are_taken():
    # Of every pair one value is large, and only the other goes on.
    n = 400
    sizes = [1000 if i % 2 else 1 for i in range(n)]
    program = Program(sizes, [1.0] * n, [(), *((i - 1 - i % 2,) for i in range(1, n))],
                      [(i,) for i in reversed(range(n))])
    cuts = Cuts(program, sum(sizes))
    large = sum(1 for bound in cuts.bounds[1:-1] if sizes[bound - 1] == 1000)
    assert cuts.schedule(8000) is not None and large <= len(cuts.bounds)


@each("make", [chain, graph])
def test_values_computed_once_and_other_bytes_count(make):
    rng = random.Random(2)
    n_schedules = 0
    for _ in range(100):
        n = rng.randint(3, 14)
        program = make(rng, n)
        program = program._replace(
            costs=[np.inf if rng.random() < 0.3 else cost for cost in program.costs],
            around=[rng.choice([0, 0, 5]) for _ in range(n)],
            beside=[rng.choice([0, 0, 7, 20]) for _ in program.reads])
        cuts = Cuts(program, peak_of(program, plain(program)))
        for budget in cuts.levels[cuts.seconds < np.inf].tolist():
            assert peak_of(program, cuts.schedule(budget)) <= budget
            n_schedules += 1
    assert n_schedules > 300


def test_other_bytes_count():
    program = Program([4] * 4, [1.0] * 4, [(), (0,), (1,), (2,)], [(3,), (2,), (1,), (0,)],
                      [0, 0, 0, 0], [0, 0, 8, 0])
    most = peak_of(program, plain(program))
    cuts = Cuts(program, most)
    for budget in cuts.levels.tolist():
        schedule = cuts.schedule(budget)
        assert schedule is None or peak_of(program, schedule) <= budget
    assert cuts.schedule(12) is not None
    assert cuts.schedule(8) is None
