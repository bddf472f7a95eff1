"""Schedules reverse every step once, in order, with the snapshots there are and fewest advances."""

import functools

import pytest

from cytape.core.schedules import (
    Kind,
    fewest_advances,
    reversal,
    sweep,
)


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


def test_nothing_is_advanced_where_all_states_fit():
    assert advances(sweep(20, 20), 20, 20) == 0


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
