"""Calls of ops with a batch axis: repeated inputs, positions along it, and rules of kinds."""

import re

import numpy as np
import pytest

import cytape
from cytape.ops.engine.batch_axis import BatchedCall, counted, merged, parted, repeated
from cytape.ops.engine.op_kinds import OPS, linear
from tests.cases import each

X, Y = cytape.constant(np.ones((4, 3))), cytape.constant(np.arange(3.0))


def call(mapped, extent=4, **attrs):
    inputs = [X if own else Y for own in mapped]
    return BatchedCall(
        OPS["Add"], attrs, inputs, list(mapped), [Y.spec] * len(mapped), [Y.spec], extent)


def test_shared_inputs_are_repeated():
    x, y = repeated(call([True, False]))
    assert x is X
    np.testing.assert_array_equal(y.numpy(), np.tile(Y.numpy(), (4, 1)))
    assert repeated(call([True, False], extent=None)) is None
    assert repeated(call([True], extent=None)) == [X]


def test_positions_along_the_batch_axis_stand_beside_an_index():
    assert counted(5, 2).shape == (5, 1, 1)
    np.testing.assert_array_equal(counted(3, 0).numpy(), [0, 1, 2])


def test_the_batch_axis_is_joined_to_the_first_axis():
    one = call([True, False])
    assert merged(one, 0).shape == (12,)
    assert parted(merged(one, 0), one, 0).shape == (4, 3)
    assert merged(call([True, True]), 0) is None
    assert merged(call([True, False], extent=None), 0) is None


@each(("facts", "error", "message"), [
    ({"bached": np.copy}, TypeError, "unknown argument 'bached'; known are batch, composition"),
    ({"lowering": "SUMM"}, ValueError, "lowering='SUMM', which must be one of CALLED, .*, SUM, "),
    ({"moving": "x"}, TypeError, "(?s)integer.*moving='x'")])
def test_an_unknown_fact_is_an_error_that_names_it(facts, error, message):
    with pytest.raises(error) as caught:
        linear("TestUnknownFact", np.copy, lambda op, g: g, **facts)
    text = "\n".join([str(caught.value), *getattr(caught.value, "__notes__", ())])
    assert "'TestUnknownFact'" in text
    assert "TestUnknownFact" not in OPS
    assert re.search(message, text)
