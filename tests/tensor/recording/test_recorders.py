"""Tapes and accumulators that are entered: what they record, and what accumulators store."""

import numpy as np
import pytest

import cytape
from cytape.core.accumulator import ForwardAccumulator
from cytape.ops.calls.tangents import fetch
from cytape.ops.engine.tensor_vspace import tensor_vspace
from cytape.tensor.recording.state import Recorder, TangentRecorder, is_recorded
from tests.tensor.watching import following


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


def test_entering_twice_and_leaving_twice_are_errors(recorder):
    with pytest.raises(ValueError, match="recording already"):
        recorder.push()
    assert recorder.active
    recorder.pop()
    with pytest.raises(ValueError, match="not recording"):
        recorder.pop()


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
        None]
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
