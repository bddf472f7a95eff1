"""Schedules at their corners."""

import numpy as np
import pytest

from cytape.optimizers import (
    cosine_schedule,
    exponential_schedule,
    step_schedule,
    warmup_schedule,
)
from tests.cases import each


def test_a_cosine_falls_from_the_rate_to_the_final_one():
    schedule = cosine_schedule(2.0, 100, final=1.0)
    rates = [schedule(step) for step in range(101)]
    assert rates[0] == 2.0
    assert rates[50] == pytest.approx(1.5)
    assert rates[100] == schedule(10**6) == 1.0
    assert np.all(np.diff(rates) < 0)


def test_a_warm_up_rises_to_the_first_rate_of_the_schedule_after_it():
    schedule = warmup_schedule(step_schedule([2], [8.0, 4.0]), 4)
    assert [schedule(step) for step in range(8)] == [2, 4, 6, 8, 8, 8, 4, 4]


def test_exponential_decay_is_continuous():
    assert exponential_schedule(1.0, 2, 0.25)(1) == 0.5


@each("make, message", [
    (lambda: step_schedule([1], [1.0]), "need 2 rates"),
    (lambda: step_schedule([2, 1], [1.0] * 3), "must increase"),
    (lambda: cosine_schedule(1.0, 5, warmup=5), "below steps"),
    (lambda: cosine_schedule(1.0, 0), "must be positive"),
    (lambda: warmup_schedule(1.0, -1), "must be positive"),
])
def test_refused_arguments(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@each("make", [
    lambda: exponential_schedule(1.0, 2, -0.5), lambda: exponential_schedule("1", 2, 0.5),
    lambda: cosine_schedule(lambda step: 0.1, 5), lambda: exponential_schedule(1.0, 2, None)])
def test_rates_and_factors_are_numbers(make):
    with pytest.raises((TypeError, ValueError), match=r"must be a number|must be at least 0"):
        make()
