"""Schedules reverse every step once, in order, with the snapshots there are and fewest advances."""

import functools

import pytest

from cytape.core.schedules import (
    Kind,
    blocks_and_snapshots,
    fewest_advances,
    reversal,
    sweep,
)
from cytape.errors import GraphError


@functools.lru_cache(None)
def by_dynamic_programming(n_steps, n_snapshots):
    if n_steps <= 1:
        return 0
    if n_snapshots == 1:
        return n_steps * (n_steps - 1) // 2
    return min(
        first + by_dynamic_programming(n_steps - first, n_snapshots - 1)
        + by_dynamic_programming(first, n_snapshots)
        for first in range(1, n_steps))


def advances(stored, n_steps, n_snapshots):
    """Follow a schedule, checking each action; return how many steps it takes."""
    kept, present, next_step, taken = set(stored), None, n_steps - 1, 0
    for kind, step, stop in reversal(stored, n_steps, n_snapshots):
        if kind is Kind.ADVANCE:
            assert present == step < stop
            present, taken = stop, taken + stop - step
        elif kind is Kind.STORE:
            assert present == step
            kept.add(step)
            assert len(kept) <= n_snapshots
        elif kind is Kind.RESTORE:
            assert step in kept
            present = step
        elif kind is Kind.REVERSE:
            assert present == step == next_step
            present, next_step = None, next_step - 1
        else:
            assert kind is Kind.FREE
            kept.remove(step)
    assert next_step == -1
    assert not kept
    return taken


def test_as_few_advances_as_griewank_and_walther_prove():
    for n_steps in range(1, 41):
        for n_snapshots in range(1, 13):
            stored = sweep(n_steps, n_snapshots)
            assert len(stored) <= n_snapshots
            found = stored[-1] + advances(stored, n_steps, n_snapshots)
            assert found == fewest_advances(n_steps, n_snapshots) == by_dynamic_programming(
                n_steps, n_snapshots), (n_steps, n_snapshots)


def test_ten_thousand_steps_with_a_hundred_snapshots():
    stored = sweep(10_000, 100)
    assert stored[-1] + advances(stored, 10_000, 100) == fewest_advances(10_000, 100) == 24_747


@pytest.mark.parametrize(("n_steps", "n_snapshots"), [(1, 1), (30, 2), (500, 7), (999, 10**30)])
def test_the_first_pass_is_a_part_of_the_reversal_of_a_state(n_steps, n_snapshots):
    assert advances([0], n_steps, n_snapshots) == fewest_advances(n_steps, n_snapshots)


def test_numbers_of_steps_that_are_too_many_for_their_products():
    n_steps = 1 << 40
    stored = sweep(n_steps, 3)
    assert [0, *sorted(set(stored[1:]))] == stored
    assert stored[-1] < n_steps


def test_nothing_is_advanced_where_all_states_fit():
    assert advances(sweep(20, 20), 20, 20) == 0


def test_states_that_are_kept_and_iterations_of_a_block():
    assert blocks_and_snapshots(100_000, None, None, 64, 640) == (100, 1000)
    assert blocks_and_snapshots(0, None, None, 64, 640) == (1, 1)
    assert blocks_and_snapshots(10, None, 10**6, 8, 8) == (10, 1)
    for allowed in (16, 24, 100, 1000, 5000, 70_000):
        block, states = blocks_and_snapshots(10_000, None, allowed, 8, 8)
        assert block >= 1
        assert states >= 1
        assert 8 * (block + states) <= allowed
    with pytest.raises(GraphError, match="16 bytes at the least.*memory_budget is 15"):
        blocks_and_snapshots(10, None, 15, 8, 8)


def test_no_steps():
    assert sweep(0, 3) == [0]
    assert advances([0], 0, 3) == 0
    assert fewest_advances(0, 3) == fewest_advances(1, 3) == 0


@pytest.mark.parametrize(("call", "message"), [
    (lambda: sweep(-1, 3), "must not be negative, got -1"),
    (lambda: sweep(3, 0), "at least one state must be stored"),
    (lambda: list(reversal([1], 3, 2)), "the first must be 0"),
    (lambda: list(reversal([0, 1, 2], 3, 2)), "of 2 states at the most"),
])
def test_what_is_no_schedule(call, message):
    with pytest.raises(ValueError, match=message):
        call()
