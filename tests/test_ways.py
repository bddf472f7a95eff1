"""That `tests.ways.check` takes every way, and reports all those on which a derivative is wrong."""

import pytest

import cytape
import cytape.numpy as cnp
from tests import ways
from tests.ways import SECOND_ORDER, TRACED, WAYS, check

X = [0.5, -1.2, 0.8]


def wrong_backwards(x):
    """Compute the sine, with a gradient that is a little wrong."""
    @cytape.custom_gradient
    def sine(x):
        return cnp.sin(x), lambda g: 1.01 * g * cnp.cos(x)

    return cnp.sum(sine(x))


def test_a_right_function_is_right_on_all_ways():
    check(lambda x: cnp.sum(cnp.sin(x) ** 2), lambda x: cnp.sum(1.0 - cnp.cos(x) ** 2), X)


def test_all_ways_of_a_wrong_gradient_are_reported(monkeypatch):
    monkeypatch.setattr(ways, "takes_all", True)
    with pytest.raises(ExceptionGroup) as caught:
        check(wrong_backwards, lambda x: cnp.sum(cnp.sin(x)), X)
    reported = {error.__notes__[-1] for error in caught.value.exceptions}
    assert reported == {f"on the way {mode}, {way}" for way, (_, _, modes) in WAYS.items()
                        for mode in modes if mode != "value"}
    assert all(name in str(caught.value) for name in reported)


def test_modes_of_second_order_take_turns(monkeypatch):
    monkeypatch.setattr(ways, "takes_all", False)
    reported = []
    for _ in SECOND_ORDER:
        with pytest.raises(ExceptionGroup) as caught:
            check(wrong_backwards, lambda x: cnp.sum(cnp.sin(x)), X)
        names = {error.__notes__[-1] for error in caught.value.exceptions}
        reported.append({(mode, way) for mode in SECOND_ORDER for way in TRACED
                         if f"on the way {mode}, {way}" in names})
    assert {len(names) for names in reported} == {len(TRACED)}
    assert len(set.union(*reported)) == len(TRACED) * len(SECOND_ORDER)
