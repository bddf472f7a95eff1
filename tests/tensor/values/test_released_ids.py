"""Who hears of the death of tensors: every tape that holds a trace, every accumulator a tangent."""

import gc
import random
import weakref

import numpy as np

import cytape
from cytape.ops.calls.tangents import fetch
from cytape.ops.engine.custom_op import record_custom
from cytape.ops.engine.general_op import GeneralOp
from cytape.ops.engine.tensor_vspace import tensor_vspace
from cytape.tensor.recording.state import Recorder, TangentRecorder, suspended
from tests.cases import each
from tests.tensor.watching import following
from tests.threads import in_thread
from tests.ways import taped, watching


def recording(x):
    recorder = Recorder()
    recorder.watch(x.id)
    recorder.push()
    return recorder


@each("seed", range(3))
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


def test_callbacks_of_a_release_may_make_and_drop_tapes():
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
            tape, y = taped(lambda x: x * x, x)
            released.append(tape.gradient(y, x).item())

    y = cytape.custom_gradient(lambda x: (2.0 * x, Deleter()))(x)
    assert released == []
    for recorder in others:
        recorder.pop()
    del y
    others.clear()
    del recorder
    assert released == [6.0]


def test_dropping_the_last_handle_drops_the_trace_from_every_tape(x):
    inner, outer, left = Recorder(), Recorder(persistent=True), Recorder()
    for recorder in (left, outer, inner):
        recorder.watch(x.id)
        recorder.push()
    y = x * x
    left.pop()
    with suspended(inner):
        assert [r.num_ops for r in (inner, outer, left)] == [1, 1, 1]
        del y
        assert [r.num_ops for r in (inner, outer, left)] == [0, 0, 0]
    inner.pop()
    outer.pop()


def test_a_dead_tensor_stays_recorded_while_something_was_made_of_it(x, recorder):
    y = x * x
    z = y * x
    del y
    assert recorder.num_ops == 2
    w = x * x
    del z
    assert recorder.num_ops == 1
    del w
    assert recorder.num_ops == 0


def test_a_tensor_may_die_in_another_thread(x, recorder):
    box = [x * x]
    recorder.pop()
    in_thread(box.clear)
    assert recorder.num_ops == 0


def test_a_value_with_two_handles_dies_with_the_second(recorder):
    v = cytape.Variable(np.ones(3))
    first, second = v.value(), v.value()
    v.assign(np.zeros(3))  # the variable lets go of the value
    assert first.id == second.id
    y = first * first
    del first
    assert recorder.is_known(second.id)
    z = second * second
    before = recorder.num_ops
    del second, y
    assert recorder.num_ops == before - 1
    assert recorder.is_known(z.id)
    del z
    assert recorder.num_ops == 0


def test_a_saved_value_that_gets_a_handle_again_keeps_its_trace(x):
    """A rule that is recorded gets tensors of saved values, and may keep them."""
    kept = []

    def vjp(op, g):
        kept.extend(op.inputs)
        return 2 * op.inputs[0] * g

    square = GeneralOp("KeepsItsInput", np.square, vjp)
    with watching(x, persistent=True) as tape:
        z = square(np.sin(x))
        gradient = tape.gradient(z, x)
        np.testing.assert_allclose(gradient.numpy(), np.sin(2.0))
    del z, gradient
    np.testing.assert_allclose(tape.gradient(kept[0], x).numpy(), np.cos(np.ones(3)))


def test_a_dying_tensor_may_hold_another_tape(x):
    """Releasing an op ends a tape, which changes the list of tapes that is being walked."""
    outer, later = Recorder(), Recorder()
    for recorder in (outer, later):
        recorder.watch(x.id)

    @cytape.custom_gradient
    def holding(x):
        inner = cytape.GradientTape(persistent=True)
        with inner:
            inner.watch(x)
            y = np.tanh(x) * x
        return x * 1.0, lambda dy: inner.gradient(y, x) * dy

    outer.push()
    later.push()
    y = holding(x)
    before = outer.num_ops, later.num_ops
    assert min(before) > 0
    later.pop()
    outer.pop()
    del y
    assert (outer.num_ops, later.num_ops) == (0, 0)


def test_a_dropped_recorder_is_no_longer_told(x):
    recorder = Recorder()
    recorder.watch(x.id)
    recorder.push()
    y = x * x
    recorder.pop()
    del recorder
    del y
    gc.collect()


def test_every_accumulator_hears_of_a_death(x):
    accumulators = [following(x, float(i)) for i in range(20)]
    for accumulator in accumulators[:-1]:
        accumulator.push()
    y = x * x
    for accumulator in accumulators[:10]:
        accumulator.pop()
    tangents = [weakref.ref(fetch(a, y.id).numpy().base) for a in accumulators[:-1]]
    assert all(tangent() is not None for tangent in tangents)
    del y
    assert not any(tangent() is not None for tangent in tangents)
    for accumulator in accumulators[10:-1]:
        accumulator.pop()


def test_a_dying_tangent_may_hold_other_accumulators(x):
    """Dropping a tangent ends accumulators, which changes the list that is being walked."""

    class Holder:
        """Object that a rule stores."""

        def __init__(self):
            self.accumulators = [following(x) for _ in range(30)]

    y = x * 1.0
    holders = [Holder() for _ in range(5)]  # those in front of the one that is looked at move it
    gone = [weakref.ref(holder) for holder in holders]
    walked = [TangentRecorder(tensor_vspace, rule=lambda *call: None) for _ in range(5)]
    for accumulator in walked:
        accumulator.watch(x.id, 5)
        accumulator.watch(y.id, holders.pop())
    assert all(holder() is not None for holder in gone)
    del y
    assert not any(holder() is not None for holder in gone)
    assert [accumulator.fetch_jvp(x.id) for accumulator in walked] == 5 * [5]


def test_a_tape_may_die_with_the_entries_of_a_dying_tensor(x):
    """The tape is the last of several; only the rule of its entry refers to it."""
    others = [Recorder() for _ in range(3)]
    for _ in range(100):
        recorder = Recorder()
        recorder.watch(x.id)
        recorder.push()
        y = cytape.constant(1.0)

        def rule(g, recorder=recorder):
            return [g]

        record_custom("Holding", [y], [x], rule)
        recorder.pop()
        gone = weakref.ref(rule)
        del recorder, rule
        assert gone() is not None
        del y
        assert gone() is None
    assert len(others) == 3
