"""Who hears of the death of tensors: every tape that holds a trace, every accumulator a tangent."""

import random
import threading

import pytest

import cytape
from cytape.ops.engine.gradients import tensor_vspace
from cytape.tensor.state import Recorder, TangentRecorder


def recording(x):
    recorder = Recorder()
    recorder.watch(x.id)
    recorder.push()
    return recorder


@pytest.mark.parametrize("seed", range(3))
def test_a_death_reaches_all_tapes_in_whatever_order_they_come_and_go(seed):
    rng = random.Random(seed)
    x = cytape.constant(3.0)
    recorders = [recording(x) for _ in range(20)]
    for recorder in rng.sample(recorders, 10):
        recorder.pop()
        recorders.remove(recorder)
    del recorder
    y = x * x
    assert [recorder.num_ops for recorder in recorders] == [1] * 10
    del y
    assert [recorder.num_ops for recorder in recorders] == [0] * 10
    for recorder in recorders:
        recorder.pop()


@pytest.mark.threads
def test_a_death_in_another_thread_reaches_the_tape():
    x = cytape.constant(3.0)
    recorder = recording(x)
    held = [x * x]
    recorder.pop()
    assert recorder.num_ops == 1
    thread = threading.Thread(target=held.clear)
    thread.start()
    thread.join()
    assert recorder.num_ops == 0


def test_a_tangent_goes_from_all_accumulators_that_are_there():
    x = cytape.constant(3.0)
    accumulators = [TangentRecorder(tensor_vspace) for _ in range(12)]
    for accumulator in accumulators:
        accumulator.watch(x.id, cytape.constant(1.0))
    del accumulators[::2]
    del accumulator
    id = x.id
    assert all(accumulator.fetch_jvp(id) is not None for accumulator in accumulators)
    del x
    assert [accumulator.fetch_jvp(id) for accumulator in accumulators] == [None] * 6


def test_what_a_release_runs_may_make_and_drop_tapes():
    """The trace holds a function whose deleter records, and drops a recorder."""
    x = cytape.constant(3.0)
    others = [recording(x) for _ in range(3)]
    released = []

    class Deleter:
        def __init__(self):
            self.more = others.pop(0)

        def __call__(self, dy):
            return dy

        def __del__(self):
            self.more.pop()
            self.more = None
            with cytape.GradientTape() as tape:
                tape.watch(x)
                y = x * x
            released.append(tape.gradient(y, x).item())

    y = cytape.custom_gradient(lambda x: (2.0 * x, Deleter()))(x)
    assert released == []
    for recorder in others:
        recorder.pop()
    del y
    others.clear()
    del recorder
    assert released == [6.0]
