"""Calls with a batch axis: calling again, and axes that move by one."""

import numpy as np

import cytape
import cytape.numpy as cnp
from cytape.ops.engine.batch_axis import along
from cytape.ops.engine.batched_call import BatchedCall
from cytape.ops.engine.op_kinds import OPS
from tests.cases import each

X = cytape.constant(np.arange(24.0).reshape(2, 3, 4))


def call(name, mapped=(True,), **attrs):
    return BatchedCall(OPS[name], attrs, [X] * len(mapped), list(mapped), [], [], 2)


def test_a_call_is_repeated_with_other_inputs_and_attributes():
    one = call("Max", axis=0, keepdims=True)
    np.testing.assert_array_equal(one.again([X]).numpy(), X.numpy().max(0, keepdims=True))
    np.testing.assert_array_equal(one.again([X], axis=2).numpy(), X.numpy().max(2, keepdims=True))
    assert one.attrs == {"axis": 0, "keepdims": True}


@each("axis, expected", [(0, 1), (-1, -1), ((0, 1), (1, 2)), (None, (1, 2))])
def test_axes_move_by_one(axis, expected):
    found = along("axis")(call("Max", axis=axis, keepdims=False))
    np.testing.assert_array_equal(found.numpy(), X.numpy().max(expected))


def test_only_the_first_input_has_the_batch_axis():
    assert along("axis")(call("Max", (True, True), axis=0)) is NotImplemented
    assert along("axis")(call("Max", (False, True), axis=0)) is NotImplemented


def test_forward_mode_takes_a_batch_of_tangents_by_the_same_rule():
    x, tangents = cytape.constant(np.arange(4.0)), np.arange(12.0).reshape(3, 4)
    with cytape.ForwardAccumulator(x, cytape.constant(tangents), use_batch=True) as accumulator:
        y = cnp.cumsum(x)
    np.testing.assert_array_equal(accumulator.jvp(y).numpy(), np.cumsum(tangents, 1))
