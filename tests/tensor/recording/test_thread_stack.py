"""Stacks of recorders per thread: in whatever order they are entered and left."""

import gc
import weakref

import numpy as np

from cytape.ops.calls.tangents import fetch
from cytape.tensor.recording.state import Recorder, is_recorded, suspended
from cytape.tensor.tensor import live_tensors
from tests.tensor.watching import following
from tests.threads import in_thread


def test_all_recorders_that_follow_an_input_record(x):
    recorders = [Recorder() for _ in range(20)]
    for recorder in recorders:
        recorder.push()
    for recorder in recorders[:10]:
        recorder.watch(x.id)
    y = x * x
    assert [recorder.num_ops for recorder in recorders] == 10 * [1] + 10 * [0]
    for recorder in recorders[::2] + recorders[1::2]:
        recorder.pop()
    assert not any(recorder.active for recorder in recorders)
    del y
    assert not any(recorder.num_ops for recorder in recorders)


def test_recorders_may_leave_in_any_order(x, recorder):
    other = Recorder()
    other.watch(x.id)
    other.push()
    recorder.pop()
    y = x * x
    assert (recorder.num_ops, other.num_ops) == (0, 1)
    other.pop()
    z = x * x
    assert (recorder.num_ops, other.num_ops) == (0, 1)
    del y, z


def test_a_recorder_records_in_the_thread_that_entered_it(x, recorder):
    assert not recorder.is_known(in_thread(lambda: x * x).id)
    elsewhere = Recorder()
    elsewhere.watch(x.id)
    in_thread(elsewhere.push)
    y = x * x
    assert (recorder.is_known(y.id), elsewhere.is_known(y.id)) == (True, False)
    elsewhere.pop()
    assert not elsewhere.active


def test_a_thread_that_ends_inside_a_recording_leaves_nothing(x):
    gc.collect()
    before = live_tensors()

    class Weak(Recorder):
        """Python subclasses can be referred to weakly."""

    def work():
        recorder = Weak()
        recorder.watch(x.id)
        recorder.push()
        return weakref.ref(recorder)

    gone = in_thread(work)
    gc.collect()
    assert gone() is None
    assert live_tensors() == before


def test_ops_of_an_accumulator_are_seen_by_outer_recorders(x):
    """A tape outside records the tangent's ops while it is not suspended, one inside never does."""
    for outside, suspend, n_ops in [(True, False, 3), (True, True, 0), (False, False, 1)]:
        tape, accumulator = Recorder(), following(x)
        tape.watch(x.id)
        for entered in (tape, accumulator) if outside else (accumulator, tape):
            entered.push()
        if suspend:
            with suspended(tape):
                y = np.sin(x)
        else:
            y = np.sin(x)
        tape.pop()
        accumulator.pop()
        np.testing.assert_allclose(fetch(accumulator, y.id).numpy(), np.cos(np.ones(3)))
        assert tape.num_ops == n_ops  # sin; cos and the product with the tangent


def test_an_accumulator_follows_in_the_thread_that_entered_it(x):
    accumulator, elsewhere = following(x), following(x)
    accumulator.push()
    in_thread(elsewhere.push)
    y, z = in_thread(lambda: x * x), x * x
    assert (fetch(accumulator, y.id), fetch(elsewhere, z.id)) == (None, None)
    assert fetch(accumulator, z.id) is not None
    accumulator.pop()
    elsewhere.pop()


def test_a_thread_that_ends_inside_a_block_leaves_nothing(x):
    def work():
        following(x).push()
        x * x

    gc.collect()
    before = live_tensors()
    in_thread(work)
    gc.collect()
    assert live_tensors() == before
    assert not is_recorded(x.id)
