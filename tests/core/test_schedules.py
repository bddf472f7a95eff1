"""Schedules reverse every step once, in order, with the snapshots there are and fewest advances."""

import functools

import pytest

from cytape.core.schedules import (
    FirstPass,
    Kind,
    blocks_and_snapshots,
    fewest_advances,
    reversal,
    snapshots_beside,
    sweep,
)
from cytape.errors import GraphError
from tests.cases import each


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


@each(("n_steps", "n_snapshots"), [(1, 1), (30, 2), (500, 7), (999, 10**30)])
def test_the_first_pass_is_a_part_of_the_reversal_of_a_state(n_steps, n_snapshots):
    assert advances([0], n_steps, n_snapshots) == fewest_advances(n_steps, n_snapshots)


def test_numbers_of_steps_that_are_too_many_for_their_products():
    n_steps = 1 << 40
    stored = sweep(n_steps, 3)
    assert [0, *sorted(set(stored[1:]))] == stored
    assert stored[-1] < n_steps


def test_nothing_is_advanced_where_all_states_fit():
    assert advances(sweep(20, 20), 20, 20) == 0


def first_pass(n_steps, known, *what):
    """Take steps; return the length of a block, the states that are stored, and where they are."""
    taken, slots = FirstPass(n_steps if known else None, *what), {}
    for step in range(n_steps):
        slot = taken.slot_for(step)
        assert slot == -1 or 0 <= slot <= len(slots)
        if slot >= 0:
            slots[slot] = step
    block, *index = taken.index()
    assert index[::2] == sorted(set(index[::2]))
    assert [slots[slot] for slot in index[1::2]] == index[::2]
    assert not any(step % block for step in index[::2])
    return block, [step // block for step in index[::2]], len(slots)


def repetitions(n_steps, n_snapshots):
    """Return how often a step must be taken at the most: with one more, more can be reversed."""
    repeated, reversible = 0, 1
    while reversible < n_steps:
        repeated += 1
        reversible = reversible * (n_snapshots + repeated) // repeated
    return repeated


def test_a_first_pass_over_a_known_number_of_steps_is_that_of_the_fewest_advances():
    for n_steps in range(1, 41):
        for n_snapshots in range(1, 13):
            block, stored, n_slots = first_pass(n_steps, True, n_snapshots, None, 8, 8)
            assert block == 1
            assert n_slots == len(stored) <= n_snapshots
            # As if there were a last step that costs nothing: the pass does not end before it.
            assert n_steps + advances(stored, n_steps, n_snapshots) == fewest_advances(
                n_steps + 1, n_snapshots), (n_steps, n_snapshots)


def test_no_step_of_an_unknown_number_is_repeated_more_often_than_it_must():
    for n_steps in [*range(1, 60), 150, 500]:
        for n_snapshots in range(1, 13):
            block, stored, n_slots = first_pass(n_steps, False, n_snapshots, None, 8, 8)
            assert block == 1
            assert n_slots == len(stored) == min(n_steps, n_snapshots)
            taken = n_steps + advances(stored, n_steps, n_snapshots)
            assert taken <= n_steps * repetitions(n_steps + 1, n_snapshots)
            assert taken <= 1.34 * fewest_advances(n_steps + 1, n_snapshots), (n_steps, n_snapshots)


def test_ten_thousand_unexpected_steps():
    _, stored, _ = first_pass(10_000, False, 100, None, 8, 8)
    assert 10_000 + advances(stored, 10_000, 100) == 24_950


@each(("state", "residual"), [(8, 8), (64, 640), (1000, 8), (8, 1000), (0, 0)])
def test_blocks_grow_with_the_number_of_steps(state, residual):
    for n_steps in [*range(1, 40), 100, 1000, 5000, 20_000]:
        block, stored, n_slots = first_pass(n_steps, False, None, None, state, residual)
        assert stored == list(range(-(-n_steps // block)))  # so nothing is taken again but blocks
        best, n_snapshots = blocks_and_snapshots(n_steps, None, None, state, residual)
        least = min(best, n_steps) * max(residual, 1) + n_snapshots * max(state, 1)
        assert min(block, n_steps) * max(residual, 1) + n_slots * max(state, 1) <= 4 / 3 * least


@each("allowed", [16, 24, 100, 1000, 5000, 70_000])
@each(("state", "residual"), [(8, 8), (1, 13), (13, 2)])
def test_blocks_and_states_within_a_budget(allowed, state, residual):
    for n_steps in [*range(1, 40), 100, 1000, 20_000]:
        block, stored, n_slots = first_pass(n_steps, False, None, allowed, state, residual)
        n_snapshots = snapshots_beside(block, n_steps, None, allowed, state, residual)
        assert len(stored) <= n_snapshots
        assert block * residual + max(n_slots, n_snapshots) * state <= allowed
        n_blocks = -(-n_steps // block)
        taken = n_steps + block * advances(stored, n_blocks, n_snapshots)
        assert taken <= block * n_blocks * max(repetitions(n_blocks + 1, n_snapshots), 1)


def test_a_first_pass_that_was_told_too_little():
    with pytest.raises(GraphError, match="at least 16 bytes.*memory_budget is 15"):
        FirstPass(10, None, 15, 8, 8)
    assert first_pass(10, False, None, 15, 8, 8)[1]  # it may end before a gradient is asked for
    assert FirstPass(None, 10**30, None, 10**30, 10**30).slot_for(0) == 0
    assert FirstPass(0, 3, None, 8, 8).index() == FirstPass(None, 3, None, 8, 8).index() == [1]


def test_states_that_are_kept_and_iterations_of_a_block():
    assert blocks_and_snapshots(100_000, None, None, 64, 640) == (100, 1000)
    assert blocks_and_snapshots(0, None, None, 64, 640) == (1, 1)
    assert blocks_and_snapshots(10, None, 10**6, 8, 8) == (10, 1)
    for allowed in (16, 24, 100, 1000, 5000, 70_000):
        block, states = blocks_and_snapshots(10_000, None, allowed, 8, 8)
        assert block >= 1
        assert states >= 1
        assert 8 * (block + states) <= allowed
    with pytest.raises(GraphError, match="at least 16 bytes.*memory_budget is 15"):
        blocks_and_snapshots(10, None, 15, 8, 8)


def test_no_steps():
    assert sweep(0, 3) == [0]
    assert advances([0], 0, 3) == 0
    assert fewest_advances(0, 3) == fewest_advances(1, 3) == 0


@each(("call", "message"), [
    (lambda: sweep(-1, 3), "must not be negative, got -1"),
    (lambda: sweep(3, 0), "n_snapshots must be at least 1"),
    (lambda: list(reversal([1], 3, 2)), "the first of them 0"),
    (lambda: list(reversal([0, 1, 2], 3, 2)), "at most 2 states")])
def test_arguments_that_are_no_schedule(call, message):
    with pytest.raises(ValueError, match=message):
        call()
