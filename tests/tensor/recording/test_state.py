"""Queries about recorders: which ones track a tensor, and which derivatives are possible."""

import pytest

import cytape
import cytape.numpy as cnp
from cytape.errors import DetachedError
from cytape.ops.engine.tensor_vspace import tensor_vspace
from cytape.tensor.recording.state import (
    Recorder,
    TangentRecorder,
    anybody_records,
    is_recorded,
    possible_modes,
    stop_recording,
    suspended,
)
from tests.threads import in_thread


def test_anybody_records(x):
    assert not anybody_records()
    for entered in Recorder(), TangentRecorder(tensor_vspace):
        entered.push()
        assert anybody_records()
        assert not in_thread(anybody_records)
        with stop_recording():
            assert not anybody_records()
        entered.pop()
    assert not anybody_records()


def test_the_modes_that_may_be_asked_for():
    recorder = Recorder()
    accumulators = [TangentRecorder(tensor_vspace), TangentRecorder(tensor_vspace, False, True)]
    assert possible_modes() == (False, False)
    found = []
    for entered in ([recorder], accumulators[:1], accumulators[1:], [recorder, *accumulators]):
        for each in entered:
            each.push()
        found.append(possible_modes())
        for each in reversed(entered):
            each.pop()
    assert found == [(True, False), (False, True), (True, True), (True, True)]


def test_is_recorded_tells_whether_a_recorder_follows_now(x, recorder):
    y = x * x
    stranger = cytape.constant(1.0)
    assert is_recorded(x.id) and is_recorded(y.id)
    assert not is_recorded(stranger.id)
    with suspended(recorder):
        assert not is_recorded(y.id)
    with stop_recording():
        assert not is_recorded(y.id)
    assert not in_thread(is_recorded, y.id)
    recorder.pop()
    assert not is_recorded(y.id)


def test_recorders_outside_of_a_trace_follow_what_it_captures(x, recorder):
    total = cnp.sum(x)
    with pytest.raises(DetachedError):
        cytape.function(lambda a: a * float(total))(1.0)
    recorder.pop()
    assert cytape.function(lambda a: a * float(total))(2.0) == 6.0


def test_a_watch_of_leaks_counts_as_no_gradient():
    kept, modes = [], []
    cytape.jvp(lambda x: (kept.append(x * x), x * 2.0)[1], (1.0,), (1.0,))
    cytape.jvp(lambda x: (modes.append(possible_modes()), x * 2.0)[1], (1.0,), (1.0,))
    assert modes == [(False, True)] and kept
