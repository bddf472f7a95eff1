"""Who records: stacks of recorders per thread, and how a tensor's death reaches all of them."""

import gc
import threading
import weakref

import numpy as np
import pytest

import cytape
from cytape.core.accumulator import ForwardAccumulator
from cytape.ops.engine.forward import fetch
from cytape.ops.engine.general_op import GeneralOp
from cytape.ops.engine.gradients import tensor_vspace
from cytape.tensor.state import (
    Recorder,
    TangentRecorder,
    anybody_records,
    is_recorded,
    possible_modes,
    stop_recording,
    suspended,
)
from cytape.tensor.tensor import live_tensors


@pytest.fixture
def x():
    return cytape.constant(np.ones(3))


@pytest.fixture
def recorder(x):
    """A recorder that watches x and is entered."""
    recorder = Recorder()
    recorder.watch(x.id)
    recorder.push()
    yield recorder
    if recorder.active:
        recorder.pop()


def in_thread(function, *args):
    """Run a function in another thread; return its result or raise its exception."""
    outcome = {}

    def run():
        try:
            outcome["result"] = function(*args)
        except BaseException as error:
            outcome["error"] = error

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if "error" in outcome:
        raise outcome["error"]
    return outcome["result"]


# -- the stack -------------------------------------------------------------------------------------


def test_a_recorder_records_while_it_is_entered(x):
    recorder = Recorder()
    recorder.watch(x.id)
    results = [x * 2.0]
    assert not recorder.active
    recorder.push()
    assert recorder.active
    results.append(x * 2.0)
    recorder.pop()
    assert not recorder.active
    results.append(x * 2.0)
    assert [recorder.is_known(y.id) for y in results] == [False, True, False]
    recorder.push()
    results.append(results[1] * 2.0)
    recorder.pop()
    assert recorder.num_ops == 2


def test_whether_anybody_records(x):
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


def test_entering_twice_and_leaving_twice_are_errors(recorder):
    with pytest.raises(ValueError, match="recording already"):
        recorder.push()
    assert recorder.active
    recorder.pop()
    with pytest.raises(ValueError, match="not recording"):
        recorder.pop()


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


# -- suspension ------------------------------------------------------------------------------------


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


# -- what is followed ------------------------------------------------------------------------------


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


def test_variables_come_in_order_of_first_watch(recorder):
    first, second, fixed = (cytape.Variable(1.0, trainable=i < 2) for i in range(3))
    y = second * first * fixed * second
    assert [v.id for v in recorder.variables] == [second.id, first.id]
    recorder.watch_variable(fixed)
    recorder.watch_variable(first)
    assert [v.id for v in recorder.variables] == [second.id, first.id, fixed.id]
    recorder.variables.clear()
    assert len(recorder.variables) == 3
    del y


def test_a_recorder_may_leave_variables_alone():
    recorder = Recorder(persistent=True, watch_accessed_variables=False)
    assert recorder.persistent and not recorder.watch_accessed_variables
    watched, other = cytape.Variable(1.0), cytape.Variable(1.0)
    recorder.watch_variable(watched)
    recorder.push()
    y, z = watched * 2.0, other * 2.0
    recorder.pop()
    assert (recorder.is_known(y.id), recorder.is_known(z.id)) == (True, False)
    assert [v.id for v in recorder.variables] == [watched.id]


# -- threads ---------------------------------------------------------------------------------------


def test_a_recorder_records_in_the_thread_that_entered_it(x, recorder):
    assert not recorder.is_known(in_thread(lambda: x * x).id)
    elsewhere = Recorder()
    elsewhere.watch(x.id)
    in_thread(elsewhere.push)
    y = x * x
    assert (recorder.is_known(y.id), elsewhere.is_known(y.id)) == (True, False)
    elsewhere.pop()
    assert not elsewhere.active


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


# -- the death of a tensor -------------------------------------------------------------------------


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
    with cytape.GradientTape(persistent=True) as tape:
        tape.watch(x)
        z = square(np.sin(x))
        gradient = tape.gradient(z, x)
        np.testing.assert_allclose(gradient.numpy(), np.sin(2.0))
    del z, gradient
    np.testing.assert_allclose(tape.gradient(kept[0], x).numpy(), np.cos(np.ones(3)))


def test_what_a_dying_tensor_held_may_be_another_tape(x):
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


# -- accumulators ----------------------------------------------------------------------------------


def following(x, tangent=1.0, **arguments):
    """Make an accumulator that follows x."""
    accumulator = TangentRecorder(tensor_vspace, **arguments)
    accumulator.watch(x.id, cytape.constant(np.full(x.shape, tangent)))
    return accumulator


def test_an_accumulator_follows_while_it_is_entered(x):
    accumulator = following(x)
    results = [x * 2.0]
    assert not accumulator.active and not is_recorded(x.id)
    accumulator.push()
    assert accumulator.active and is_recorded(x.id)
    with pytest.raises(ValueError, match="recording already"):
        accumulator.push()
    results.append(x * 2.0)
    accumulator.pop()
    assert not accumulator.active and not is_recorded(x.id)
    with pytest.raises(ValueError, match="not recording"):
        accumulator.pop()
    results.append(x * 2.0)
    assert [fetch(accumulator, y.id) is None for y in results] == [True, False, True]
    with pytest.raises(TypeError):
        fetch(None, x.id)


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


def test_what_an_accumulator_computes_is_for_those_outside(x):
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


def test_what_a_dying_tangent_held_may_be_other_accumulators(x):
    """Dropping a tangent ends accumulators, which changes the list that is being walked."""

    class Holder:
        """What a rule stores may be anything."""

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


@pytest.mark.parametrize("use_batch", [False, True])
@pytest.mark.parametrize("f", [
    lambda x: np.sin(x) * x, lambda x: x[1:] @ x[:2], lambda x: np.sum(x * x, keepdims=True),
    lambda x: np.stack([x, x[::-1]]), lambda x: np.where(x > 0.5, x, 2 * x),
])
def test_transposition_gives_what_the_rules_give(f, use_batch):
    x = cytape.constant([0.25, 0.5, 1.5])
    tangent = cytape.constant(np.arange(6.0).reshape(2, 3) if use_batch else [1.0, 2.0, 3.0])
    jvps = []
    for by_transposition in (False, True):
        accumulator = TangentRecorder(tensor_vspace, use_batch, by_transposition)
        assert accumulator.by_transposition == by_transposition
        accumulator.watch(x.id, tangent)
        accumulator.push()
        y = f(x)
        accumulator.pop()
        jvps.append(fetch(accumulator, y.id).numpy())
    np.testing.assert_allclose(jvps[0], jvps[1])


def test_a_rule_of_ones_own(x):
    """Count ops instead of computing tangents."""
    seen = []

    def rule(op, inputs, outputs, stored, attrs):
        seen.append((op.name, [i.shape for i in inputs], [o.shape for o in outputs], stored))
        return 1 + max(s for s in stored if s is not None)

    accumulator = TangentRecorder(tensor_vspace, rule=rule)
    accumulator.watch(x.id, 0)
    accumulator.push()
    y = np.sum(np.sin(x) * 2.0)
    accumulator.pop()
    assert accumulator.fetch_jvp(y.id) == 3
    shapes = [[(3,)], [(3,), ()], [(3,)]]
    assert [inputs for _, inputs, _, _ in seen] == shapes
    assert [outputs for _, _, outputs, _ in seen] == [[(3,)], [(3,)], [()]]
    assert [stored for *_, stored in seen] == [[0], [1, None], [2]]


def test_a_rule_stores_what_it_likes(x):
    calls = []

    def rule(op, inputs, outputs, stored, attrs):
        calls.append((op.name, [y.shape for y in outputs], stored, attrs))
        return [f"{op.name}({', '.join(map(str, stored))})" for _ in outputs]

    recorder = TangentRecorder(tensor_vspace, rule=rule)
    recorder.watch(x.id, "x")
    recorder.push()
    matrix = np.eye(3)
    results = [x * x, x @ matrix, np.sum(x), x[1:], np.tanh(x), *np.split(x, 3), np.floor(x)]
    recorder.pop()
    assert [fetch(recorder, y.id) for y in results] == [
        "Multiply(x, x)", "MatMul(x, None)", "Sum(x)", "GetItem(x)", "Tanh(x)", *["Split(x)"] * 3,
        None,
    ]  # fmt: skip
    assert calls[2] == ("Sum", [()], ["x"], {"axis": None, "dtype": None, "keepdims": False})


def test_a_rule_is_not_followed_by_its_own_recorder_but_by_those_outside(x):
    inner = TangentRecorder(tensor_vspace, rule=lambda op, inputs, *rest: [inputs[0] * 2.0])
    outer = TangentRecorder(tensor_vspace)
    for recorder in (outer, inner):
        recorder.watch(x.id, cytape.constant(np.ones(3)))
        recorder.push()
    y = np.sin(x)
    inner.pop()
    outer.pop()
    np.testing.assert_array_equal(fetch(outer, fetch(inner, y.id).id).numpy(), np.full(3, 2.0))


def test_a_recorder_is_not_made_with_unknown_arguments():
    for arguments in ({"rules": None}, {"use_batch": False, "tape": None}):
        with pytest.raises(TypeError):
            TangentRecorder(tensor_vspace, **arguments)
        with pytest.raises(TypeError):
            ForwardAccumulator(tensor_vspace, **arguments)
