"""Calls as derivative rules see them: inputs, outputs and attributes, and what is not saved."""

import copy
import pickle

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from cytape.errors import InvalidGradientError
from cytape.ops.calls.op_call import OpCall
from cytape.ops.engine.general_op import GeneralOp
from tests.cases import each
from tests.ops.engine.test_general_op import V3, run
from tests.ways import watching


class Seen:
    """An op of x and y that writes down the call its gradient function was given."""

    def __init__(self, **declared):
        self.op = GeneralOp("Seen", lambda x, y, axis=0, scale=1.0: (x + y, x * scale), self.vjp,
                            **declared)

    def vjp(self, op, g, h):
        self.call, self.gradients = op, (g, h)
        return g, g


@each("recorded", [False, True])
def test_a_rule_sees_the_call(recorded):
    seen = Seen(saved_outputs=(1,))
    run(seen.op, V3, 2 * V3, recorded=recorded, axis=1, scale=3.0)
    call = seen.call
    assert isinstance(call, OpCall)
    assert call.op is seen.op
    assert call.type == "Seen"
    assert call.attrs == {"axis": 1, "scale": 3.0}
    assert call.get_attr("scale") == 3.0
    with pytest.raises(KeyError):
        call.get_attr("nothing")
    assert call.needs == (True, True)
    assert [s.shape for s in call.input_specs] == [s.shape for s in call.output_specs] == 2 * [(3,)]
    assert len(call.inputs) == len(call.outputs) == 2
    for found, expected in zip([*call.inputs, call.outputs[1]], [V3, 2 * V3, 3 * V3], strict=True):
        np.testing.assert_array_equal(np.asarray(found), expected)
    for gradient in seen.gradients:
        np.testing.assert_array_equal(np.asarray(gradient), np.ones(3))


@each(recorded=[False, True], use=[
    lambda x: x, lambda x: x * 2.0, lambda x: 2.0 * x, lambda x: np.ones(3) @ x, lambda x: x.shape,
    np.sin, np.sum, np.asarray, cnp.tanh, lambda x: x[0], lambda x: [*x], float, lambda x: -x,
    lambda x: cytape.constant(2.0) * x, lambda x: np.ones(3) * x])
def test_a_rule_that_uses_what_is_not_saved_is_told_so(use, recorded):
    """An input was None before: a rule that returned it had no gradient, others no reason."""
    op = GeneralOp("Forgot", lambda x, y: x * y, lambda op, g: (use(op.inputs[1]), g),
                   saved_inputs=(0,))
    with pytest.raises(InvalidGradientError, match=r"'Forgot' reads its input 1, .* saved_inputs"):
        run(op, V3, 2 * V3, recorded=recorded)
    op = GeneralOp("Forgot", lambda x, y: x * y, lambda op, g: (g, use(op.outputs[0])))
    with pytest.raises(InvalidGradientError, match=r"output 0, .* add 0 to saved_outputs"):
        run(op, V3, 2 * V3, recorded=recorded)


@each("recorded, kind", [(False, np.ndarray), (True, cytape.Tensor)])
def test_a_rule_gets_tensors_only_under_recorders(recorded, kind):
    seen = Seen()
    run(seen.op, V3, V3, recorded=recorded)
    assert all(type(x) is kind for x in (*seen.call.inputs, *seen.gradients))


@each("recorded", [False, True])
def test_a_rule_that_is_made_of_ops_gets_tensors(recorded):
    seen = Seen()
    seen.op.rule_takes_tensors = True
    run(seen.op, V3, V3, recorded=recorded)
    assert all(type(x) is cytape.Tensor for x in (*seen.call.inputs, *seen.gradients))


def test_positions_of_many_inputs_are_told_apart():
    op = GeneralOp("Many", lambda *xs: xs[0] * xs[70], saved_inputs=(0, 70),
                   vjp=lambda op, g: (g * op.inputs[70], *[None] * 69, g * op.inputs[0]))
    first, *_, last = run(op, V3, *[np.zeros(3)] * 69, 2 * V3)
    np.testing.assert_array_equal(first, 2 * V3)
    np.testing.assert_array_equal(last, V3)


def test_the_arrays_that_a_rule_gets_cannot_be_changed():
    seen = Seen(saved_outputs=(0, 1))
    run(seen.op, V3, V3)
    for array in (*seen.call.inputs, *seen.call.outputs, *seen.gradients):
        with pytest.raises(ValueError, match="read-only"):
            array += 1


def test_a_rule_knows_which_gradients_are_wanted():
    seen = Seen()
    run(seen.op, V3, V3, watch=[1])
    assert seen.call.needs == (False, True)


def test_nothing_of_a_call_can_be_replaced():
    seen = Seen()
    run(seen.op, V3, V3)
    for name in ("op", "attrs", "needs", "inputs", "outputs", "input_specs", "output_specs"):
        with pytest.raises(AttributeError):
            setattr(seen.call, name, None)


def test_an_output_without_gradient_has_zeros_of_its_shape_and_dtype():
    seen = Seen()
    x = cytape.constant(np.float32(V3))
    with watching(x) as tape:
        first, _ = seen.op(x, np.float32(V3))
    tape.gradient(first, x)
    zeros = seen.gradients[1]
    assert (zeros.shape, zeros.dtype) == ((3,), np.float32)
    assert not np.any(zeros)


@each("again", [copy.copy, lambda x: pickle.loads(pickle.dumps(x))])
def test_unsaved_inputs_raise_in_copies_too(again):
    kept = []
    op = GeneralOp("Keeps", lambda x, y: x + y,
                   vjp=lambda op, g: kept.append(op.inputs[0]) or (g, None), saved_inputs=(1,))
    cytape.grad(lambda x: cnp.sum(op(x, 1.0)))(np.ones(2))
    with pytest.raises(InvalidGradientError, match="'Keeps' reads its input 0"):
        again(kept[0]) + 1
