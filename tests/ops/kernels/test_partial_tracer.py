"""Steps that partial derivatives record with symbols: equal steps are merged."""

import numpy as np
import pytest

from cytape.ops.kernels.partial_tracer import NotAProgram, Tracer, has_loop


@pytest.fixture
def tracer():
    return Tracer()


def test_equal_steps_and_constants_are_one(tracer):
    x = tracer.new_symbol()
    again = x * 2.0 + np.exp(x * 2.0)
    n_steps = len(tracer.steps)
    assert again is x * 2.0 + np.exp(x * 2)
    assert len(tracer.steps) == n_steps == 3
    assert list(tracer.constants.values()) == [2.0]


def test_zeros_of_different_signs_are_two_constants(tracer):
    assert tracer.constant(0.0) is not tracer.constant(-0.0)


def test_booleans_become_numbers_where_numbers_are_due(tracer):
    x = tracer.new_symbol()
    assert (x > 0).is_bool
    assert not (x * (x > 0)).is_bool
    assert not np.where(x > 0, x, 0).is_bool


@pytest.mark.parametrize("misuse", [
    lambda x: x.shape, lambda x: 1 if x else 0, lambda x: x * 1j, lambda x: np.sum(x),
    lambda x: np.where(x, x, x), lambda x: np.add(x, x, out=x)])
def test_operations_that_are_no_step(tracer, misuse):
    with pytest.raises(NotAProgram):
        misuse(tracer.new_symbol())


def test_types_that_a_function_has_loops_for():
    assert has_loop(np.add, np.dtype(float).num) == np.dtype(float).num
    assert has_loop(np.less, np.dtype(float).num) == np.dtype(bool).num
    assert has_loop(np.bitwise_and, np.dtype(float).num) is None
    assert has_loop(np.modf, np.dtype(float).num) is None
