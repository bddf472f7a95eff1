"""Peaks and times of schedules, by hand."""

import random

import pytest

from cytape.graph.checkpoint.recompute_schedule import (
    Program,
    cost_of,
    events,
    live_bytes,
    peak_of,
    plain,
    without_unread,
)
from tests.graph.checkpoint.programs import graph

TANHS = Program([2, 3, 4], [1.0, 2.0, 4.0], [(), (0,), (1,)], [(2,), (1,), (0,)], [0, 0, 1],
                [10, 20, 30])


def test_values_in_memory():
    assert live_bytes(TANHS, plain(TANHS)) == [2, 5, 10, 19, 25, 32]
    # Value 1 goes when value 2 has been computed, and comes again.
    again = ((), (1,), ())
    assert live_bytes(TANHS, again) == [2, 5, 10, 16, 25, 25, 32]
    assert peak_of(TANHS, again) == 32 and cost_of(TANHS, again) == 2.0
    assert [event[0] for event in events(TANHS, again)] == [0, 1, 2, -1, 1, -1, -1]


def test_unread_values_take_memory_while_they_are_made():
    program = Program([1, 100, 1], [1.0] * 3, [(), (), (0,)], [(2,)])
    assert live_bytes(program, plain(program)) == [1, 101, 2, 1]


def test_values_read_too_early():
    program = Program([1, 1], [1.0, 1.0], [(1,), ()], [(0,)])
    with pytest.raises(ValueError, match=r"\[1\] are read before"):
        peak_of(program, plain(program))


def test_unread_values_are_left_out():
    assert without_unread(TANHS, ((0, 1, 2), (0, 1), ())) == ((0, 1, 2), (0, 1), ())
    assert without_unread(TANHS, ((1,), (0,), (1,))) == ((1,), (0,), ())
    program = Program([1] * 3, [1.0] * 3, [(), (0,), (1,)], [(2,), (2,)])
    assert without_unread(program, ((0, 1), (0, 1, 2))) == ((), (0, 1, 2))


def test_leaving_out_never_costs_memory():
    rng = random.Random(0)
    for _ in range(50):
        program = graph(rng, 8)
        schedule = tuple(
            tuple(sorted(rng.sample(range(8), rng.randint(0, 3)))) for _ in program.reads)
        shorter = without_unread(program, schedule)
        assert cost_of(program, shorter) <= cost_of(program, schedule)
        assert peak_of(program, shorter) <= peak_of(program, schedule)
