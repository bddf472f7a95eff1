"""Functions that are not connected."""

import pytest

import cytape
import cytape.numpy as cnp


def gradients(f, *inputs):
    tensors = [cytape.constant(x) for x in inputs]
    with cytape.GradientTape() as tape:
        tape.watch(tensors)
        value = f(*tensors)
    return [None if g is None else g.numpy() for g in tape.gradient(value, tensors)]


@pytest.mark.parametrize("f", [cnp.floor, cnp.round, cnp.sign, lambda x: x > 1, cnp.isnan])
def test_D_2_18_step_functions_are_not_connected(f):
    assert gradients(f, 3.3) == [None]
