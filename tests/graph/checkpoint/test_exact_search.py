"""The search against trying everything."""

import random
from math import inf

import pytest

from cytape.graph.checkpoint.exact_search import search
from cytape.graph.checkpoint.recompute_schedule import Program, cost_of, peak_of, plain
from tests.graph.checkpoint.programs import chain, graph, least_seconds


@pytest.mark.parametrize("make, n, n_programs", [
    (chain, 5, 20), (chain, 8, 6), (chain, 10, 2), (graph, 5, 20), (graph, 8, 5),
    pytest.param(chain, 12, 1, marks=pytest.mark.exhaustive)])
def test_it_finds_the_best_there_is(make, n, n_programs):
    rng = random.Random(n)
    for _ in range(n_programs):
        program = make(rng, n)
        most = peak_of(program, plain(program))
        for budget in sorted({int(most * part) for part in (0.3, 0.45, 0.6, 0.75, 0.9, 1.0)}):
            expected = least_seconds(program, budget)
            found = search(program, budget, 1 << 20)
            if expected is None:
                assert found is None
            else:
                assert peak_of(program, found) <= budget
                assert cost_of(program, found) == expected


def test_other_bytes_count():
    rng = random.Random(3)
    for _ in range(20):
        program = chain(rng, 6)._replace(
            around=[rng.randint(0, 9) for _ in range(6)],
            beside=[rng.randint(0, 9) for _ in range(6)])
        most = peak_of(program, plain(program))
        for budget in (most - 1, most - 3, most - 6):
            expected, found = least_seconds(program, budget), search(program, budget, 1 << 20)
            assert (found is None) == (expected is None)
            if found is not None:
                assert peak_of(program, found) <= budget
                assert cost_of(program, found) == expected


def test_checkpoints_are_let_go_early():
    # To keep value 3 for both of its readers would leave no room for what they need besides.
    rng, early = random.Random(5), 0
    for _ in range(40):
        program = chain(rng, 7)
        for budget in range(8, peak_of(program, plain(program))):
            found = search(program, budget, 1 << 20)
            if found is not None:
                values = [value for values in found for value in values]
                early += len(values) > len(set(values))
    assert early


def test_values_of_stateful_ops_are_kept():
    program = Program([4, 4, 4, 4], [inf, 1.0, 1.0, 1.0], [(), (0,), (1,), (2,)],
                      [(3,), (2,), (1,), (0,)])
    found = search(program, 12, 1000)
    assert 0 not in [value for values in found for value in values]
    assert peak_of(program, found) <= 12
    assert search(program._replace(costs=[inf] * 4), 12, 1000) is None


def test_it_gives_up():
    with pytest.raises(TimeoutError, match="among 3 states"):
        search(chain(random.Random(0), 9), 20, 3)
