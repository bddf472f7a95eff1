"""The planner: against exact searches, on chains and other graphs."""

import random
from math import inf

import pytest

from cytape.graph.checkpoint import schedule_curve as planner_module
from cytape.graph.checkpoint.exact_search import search
from cytape.graph.checkpoint.recompute_schedule import Program, cost_of, peak_of, plain
from cytape.graph.checkpoint.schedule_curve import Planner
from tests.graph.checkpoint.programs import chain, graph, least_seconds
from tests.tables import table


def tanhs(n):
    return Program([1000] * n, [1.0] * n, [(), *((i,) for i in range(n - 1))],
                   [(i,) for i in reversed(range(n))])


@pytest.mark.parametrize("n", table([3, 4, 5, 6, 7, 8, 9], [12]))
def test_random_chains_are_as_good_as_by_trying_everything(n):
    program = chain(random.Random(n), n)
    planner = Planner(program)
    for part in (0.5, 0.7, 0.9):
        budget = int(part * planner.plain_peak)
        point, expected = planner.fastest(budget), least_seconds(program, budget)
        assert (None if point is None else point.seconds) == expected


def total(program, seconds):
    """As if a step back took twice the time of the op: the time of the whole gradient."""
    return 3 * sum(program.costs) + seconds


@pytest.mark.parametrize("searched", [True, False])
def test_random_graphs_are_within_a_tenth_of_an_exact_search(monkeypatch, searched):
    if not searched:  # the heuristic alone
        monkeypatch.setattr(planner_module, "MOST_SEARCHED", 0)
    rng = random.Random(7)
    ratios = []
    for _ in range(200):
        program = graph(rng, rng.randint(4, 15))
        planner = Planner(program)
        budget = int(rng.choice([0.6, 0.7, 0.8, 0.9]) * planner.plain_peak)
        best = search(program, budget, 1 << 18)
        point = planner.fastest(budget)
        assert (point is None) == (best is None)
        if point is not None:
            assert point.peak <= budget
            ratios.append(total(program, point.seconds) / total(program, cost_of(program, best)))
    assert len(ratios) > 100
    assert max(ratios) <= 1.1 and min(ratios) >= 1 - 1e-12


def test_a_chain_of_100_in_the_memory_of_20():
    planner = Planner(tanhs(100))
    point = planner.fastest(20_000)
    assert point.peak <= 20_000
    assert point.seconds <= 99


@pytest.mark.parametrize("n", table([10, 40, 200], [1000]))
def test_the_curve_goes_down(n):
    planner = Planner(tanhs(n))
    curve = planner.curve()
    assert curve[0].peak == planner.plain_peak and curve[0].seconds == 0
    for a, b in zip(curve, curve[1:], strict=False):
        assert b.peak < a.peak and b.seconds > a.seconds
        assert peak_of(planner.program, b.schedule) == b.peak
        assert cost_of(planner.program, b.schedule) == b.seconds
    assert curve[-1].peak <= planner.smallest().peak
    # Some two square roots, for one more forward pass.
    assert min(point.peak for point in curve if point.seconds <= n) <= 3 * 1000 * n**0.5


def test_the_smallest_is_the_smallest():
    planner = Planner(tanhs(12))
    assert planner.smallest().peak == 2000
    assert planner.fastest(1999) is None
    assert planner.fastest(2000).seconds == 10 + 8 + 6 + 4 + 2  # from the first one, in pairs


def test_a_value_computed_once_is_in_memory_while_others_are_computed_again():
    program = Program(
        [8, 1, 120, 24, 3, 8, 1, 1, 1, 8, 1], [1, 1, inf, 1, 1, 1, 1, 1, 1, 1, 1],
        [(), (0,), (1,), (), (2,), (4,), (5,), (5,), (6, 7), (5, 8), (9,)],
        [(), (2, 3, 9, 10), (1, 2)], [0, 0, 0, 24, 0, 0, 0, 0, 0, 0, 0], [48, 169, 200])
    planner = Planner(program)
    assert planner.plain_peak == planner.smallest().peak == 323
    assert planner.smallest().schedule == plain(program)


def test_small_budgets_tell_small_values_from_none():
    """Layers of a small value that is read on, and of a large one that only its own step reads."""
    n, small, large = 30, 3001, 36007
    sizes, inputs = [], []
    for i in range(n):
        before = (2 * i - 1,) if i else ()
        sizes += [large, small]
        inputs += [before, (*before, 2 * i)]
    reads = [(2 * i, *inputs[2 * i]) for i in reversed(range(n))]
    planner = Planner(Program(sizes, [1.0] * len(sizes), inputs, reads))
    point = planner.fastest(int(1.25 * n * small) + 2 * large)
    assert point.seconds <= n - 1  # the large ones again, once, and no small one


def test_others_keep_to_the_budget_too():
    rng = random.Random(5)
    planner = Planner(graph(rng, 40))
    for i in range(1, planner.n_points - 1):
        budget = planner._budgets()[i]
        assert all(point.peak <= budget for point in planner.others(i))
    assert any(planner.others(i) for i in range(1, planner.n_points - 1))


def test_a_value_kept_alone():
    planner = Planner(tanhs(9))
    schedule = planner.keeping({2, 5})
    assert schedule == ((6, 7, 8), (), (), (), (3, 4), (), (), (0, 1), ())
    assert peak_of(planner.program, schedule) < planner.plain_peak


def test_where_the_search_gives_up_a_smaller_schedule_does(monkeypatch):
    monkeypatch.setattr(planner_module, "MOST_STATES", 60)
    rng = random.Random(4)
    for _ in range(20):
        planner = Planner(graph(rng, 13))
        points = [planner.at(i) for i in range(planner.n_points)]
        assert points[0].peak == planner.plain_peak
        assert points[-1] == planner.smallest()
        assert all(peak_of(planner.program, point.schedule) == point.peak for point in points)
