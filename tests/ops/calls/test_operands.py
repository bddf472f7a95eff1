"""Checks of arguments that the families share."""

import numpy as np
import pytest

import cytape
from cytape.ops.calls.operands import axis_in_batch, is_tensor, only_numpy, plain, tensors_if_any
from tests.cases import each

T = cytape.constant([1.0, 2.0])
V = cytape.Variable([1.0, 2.0])


@each("value, expected", [
    (T, True), (V, True), (np.ones(2), False), (1.0, False), ([T], True), (None, False),
    ([[1.0], (2.0, [V])], True), ([[1.0], (2.0, [])], False)])
def test_is_tensor(value, expected):
    assert is_tensor(value) is expected


def test_options_for_numpy_are_those_that_are_given():
    out = np.zeros(2)
    assert only_numpy("f", [np.ones(2)], out=None, where=np._NoValue) == {}
    assert only_numpy("f", [np.ones(2)], out=out, dtype=None) == {"out": out}
    assert only_numpy("f", [T], out=None, where=np._NoValue) == {}


@pytest.mark.parametrize("inputs, given", [
    ([T], {"out": np.zeros(2)}), ([1.0, V], {"out": np.zeros(2)}), ([np.ones(2)], {"out": T})])
def test_options_for_numpy_are_refused_where_a_tensor_is(inputs, given):
    with pytest.raises(TypeError, match="f: out is not supported"):
        only_numpy("f", inputs, **given)


def test_all_refused_options_are_named():
    with pytest.raises(TypeError, match="out, where"):
        only_numpy("f", [T], out=np.zeros(2), where=True)


def test_one_tensor_makes_all_values_tensors():
    values = [np.ones(2), 1.0]
    assert tensors_if_any(values) is values
    first, second, third = tensors_if_any([np.ones(2), T, V])
    assert second is T
    assert {type(first), type(third)} == {cytape.Tensor}
    assert tensors_if_any([]) == []


def test_plain():
    assert plain(T) is not T and isinstance(plain(T), np.ndarray)
    assert plain(V).tolist() == [1.0, 2.0]
    array = np.ones(2)
    assert plain(array) is array
    assert plain(3) == 3


@each("axis, ndim, expected", [
    (0, 3, 1), (1, 3, 2), (-1, 3, -1), (None, 3, (1, 2)), ((0, -1), 4, (1, -1)),
    ([0, 2], 4, (1, 3)), ((), 3, ()), (0, 1, ()), (-1, 1, ()), (None, 1, ())])
def test_the_axes_of_one_tangent_in_a_batch(axis, ndim, expected):
    assert axis_in_batch(axis, ndim) == expected
