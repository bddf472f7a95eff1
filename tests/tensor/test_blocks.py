"""Suspension of recorders, for the length of a block; test_interleaving.py mixes blocks."""

import pytest

from cytape.ops.engine.tangents import fetch
from cytape.tensor.state import (
    Recorder,
    stop_recording,
    suspended,
)
from tests.tensor.recording import following, in_thread


def test_a_suspended_recorder_sees_nothing(x, recorder):
    other = Recorder()
    other.watch(x.id)
    other.push()
    with suspended(recorder):
        with suspended(recorder):
            pass
        y = x * x
    z = x * x
    other.pop()
    assert (recorder.is_known(y.id), recorder.is_known(z.id)) == (False, True)
    assert (other.is_known(y.id), other.is_known(z.id)) == (True, True)
    assert recorder.active


def test_stop_recording_suspends_the_recorders_that_are_entered(x, recorder):
    outer, inside = Recorder(), Recorder()
    outer.watch(x.id)
    outer.push()
    with stop_recording():
        with stop_recording():
            pass
        inside.watch(x.id)
        inside.push()
        y = x * x
    z = x * x
    inside.pop()
    outer.pop()
    assert [r.is_known(y.id) for r in (recorder, outer, inside)] == [False, False, True]
    assert [r.is_known(z.id) for r in (recorder, outer, inside)] == [True, True, True]


def test_a_recorder_that_leaves_while_suspended_may_come_back(x, recorder):
    with stop_recording():
        recorder.pop()
    recorder.push()
    y = x * x
    assert recorder.is_known(y.id)


@pytest.mark.parametrize("suspension", [lambda recorder: stop_recording(), suspended])
def test_recording_goes_on_after_an_error(x, recorder, suspension):
    with pytest.raises(ArithmeticError):
        with suspension(recorder):
            raise ArithmeticError
    y = x * x
    assert recorder.is_known(y.id)


def test_only_a_recorder_can_be_suspended():
    with pytest.raises(TypeError):
        with suspended(None):
            pass


def test_stop_recording_is_for_one_thread(x):
    recorder = Recorder()
    recorder.watch(x.id)

    def work():
        recorder.push()
        y = x * x
        recorder.pop()
        return recorder.is_known(y.id)

    with stop_recording():
        assert in_thread(work)


def test_a_suspended_accumulator_follows_nothing(x, recorder):
    accumulator = following(x)
    accumulator.push()
    with suspended(accumulator):
        y = x * x
        assert recorder.is_known(y.id)
        with stop_recording():
            pass
        hidden = x * x
    z = x * x
    accumulator.pop()
    followed = [fetch(accumulator, t.id) is not None for t in (y, hidden, z)]
    assert followed == [False, False, True]


@pytest.mark.parametrize("suspension", [lambda recorder: stop_recording(), suspended])
def test_following_goes_on_after_an_error(x, suspension):
    accumulator = following(x)
    accumulator.push()
    with pytest.raises(ArithmeticError):
        with suspension(accumulator):
            raise ArithmeticError
    y = x * x
    accumulator.pop()
    assert fetch(accumulator, y.id) is not None
