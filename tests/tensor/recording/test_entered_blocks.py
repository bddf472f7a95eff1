"""Suspension of recorders, for the length of a block; test_interleaving.py mixes blocks."""

import asyncio

import pytest

import cytape
from cytape.ops.calls.tangents import fetch
from cytape.tensor.recording.state import Recorder, stop_recording, suspended
from tests.tensor.watching import following
from tests.threads import in_thread


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


# ---- push_forwardprop_state


def test_an_accumulator_does_not_follow_what_it_computes_unless_its_state_is_pushed():
    x, y, z = (cytape.constant(3.0) for _ in range(3))
    found = {}

    def forward(dx):
        inner = cytape.GradientTape()
        found["within"] = accumulator.jvp(x * x)
        with cytape.push_forwardprop_state():
            found["pushed"] = accumulator.jvp(x * x)
            with cytape.push_forwardprop_state(), inner:
                inner.watch(x)
                found["of a tape"] = inner.gradient(x * x, x)
            with cytape.stop_recording():
                found["stopped"] = accumulator.jvp(x * x)
        found["after"] = accumulator.jvp(x * x)
        return [dx]

    with cytape.ForwardAccumulator(x, 2.0) as accumulator:
        cytape.record_operation("Op", [y], [x], lambda dy: [dy], forward)
        with cytape.push_forwardprop_state():  # here it changes nothing
            cytape.record_operation("Op", [z], [x], lambda dy: [dy], lambda dx: [dx * 5.0])
            product = x * x
    assert {key: None if v is None else float(v) for key, v in found.items()} == {
        "within": None, "pushed": 12.0, "of a tape": 6.0, "stopped": None, "after": None}
    assert [float(accumulator.jvp(t)) for t in (y, z, product)] == [2.0, 10.0, 12.0]


def test_a_pushed_state_is_that_of_all_accumulators_and_ends_with_an_error():
    x, y = cytape.constant(3.0), cytape.constant(3.0)
    seen = []

    def forward(dx):
        with pytest.raises(ArithmeticError):
            with cytape.push_forwardprop_state():
                square = x * x
                seen.append([each.jvp(square).item() for each in (outer, inner)])
                raise ArithmeticError
        square = x * x
        seen.append([each.jvp(square, "zero").item() for each in (outer, inner)])
        return [dx]

    with cytape.ForwardAccumulator(x, 1.0) as outer, cytape.ForwardAccumulator(x, 2.0) as inner:
        cytape.record_operation("Op", [y], [x], lambda dy: [dy], forward)
        square = x * x
    assert seen == [[6.0, 12.0], [0.0, 0.0], [6.0, 12.0], [6.0, 0.0]]  # of the outer one first
    assert [float(each.jvp(square)) for each in (outer, inner)] == [6.0, 12.0]


def test_a_pushed_state_belongs_to_its_task():
    x = cytape.constant(3.0)

    async def pushing(begun, may_end):
        with cytape.push_forwardprop_state():
            begun.set()
            await may_end.wait()

    async def main():
        begun, may_end = asyncio.Event(), asyncio.Event()
        with cytape.ForwardAccumulator(x, 1.0) as accumulator:
            task = asyncio.create_task(pushing(begun, may_end))
            await begun.wait()
            y = x * x
        z = x * x
        may_end.set()
        await task
        return accumulator.jvp(y), accumulator.jvp(z)

    y, z = asyncio.run(main())
    assert float(y) == 6.0 and z is None
