"""Calls recorded on a tape."""

import numpy as np

import cytape
from cytape.ops.calls.recorded_calls import recorded_calls


def test_operands_have_specs_numbers_and_attributes():
    v = cytape.Variable(np.ones((2, 3)))
    with cytape.GradientTape() as tape:
        y = (v * 2.0).sum(axis=0)
    calls = recorded_calls(tape._recorder)
    assert [(call.name, [x.id for x in call.inputs], [x.id for x in call.outputs])
            for call in calls] == tape.recorded_ops()
    read, product, total = calls
    assert read.inputs[0].spec is v.spec
    assert product.inputs[1].number == "2.0" and product.inputs[1].id is None
    assert total.attrs["axis"] == 0 and total.outputs[0].spec is y.spec


def test_dropped_calls_are_left_out():
    x = cytape.constant([1.0, 2.0])
    with cytape.GradientTape() as tape:
        tape.watch(x)
        np.sin(x)
        y = np.cos(x)
    assert [call.name for call in recorded_calls(tape._recorder)] == ["Cos"]
    assert y.shape == (2,)
