"""Tensors of what users have: numbers, lists, arrays, tensors."""

from fractions import Fraction

import numpy as np
import pytest

import cytape
from tests.cases import each
from tests.ways import watching


@each("data, dtype", [
    (1, "int64"), (1.5, "float64"), (2j, "complex128"), (True, "bool"), ([1, 2], "int64"),
    ([1, 2.5], "float64"), ([[1.0], [2.0]], "float64"), ([], "float64"), (np.float32(1), "float32"),
    (np.int8([1, 2]), "int8"), (range(3), "int64"), ("text", "U4"),
    (np.datetime64("2020-01-01"), "datetime64[D]")])
@each("make", [cytape.constant, cytape.convert_to_tensor])
def test_data_have_the_shape_and_dtype_that_numpy_gives_them(make, data, dtype):
    tensor = make(data)
    assert tensor.shape == np.shape(data)
    assert tensor.dtype == np.dtype(dtype)
    np.testing.assert_array_equal(tensor.numpy(), data)


@each("make", [cytape.constant, cytape.convert_to_tensor])
def test_a_dtype_may_be_asked_for(make):
    assert make([1, 2], dtype="float32").dtype == np.float32
    assert make(cytape.constant([1.5, 2.0]), dtype=int).numpy().tolist() == [1, 2]
    assert make(cytape.Variable([1, 2]), np.complex64).dtype == np.complex64


def test_a_constant_of_a_tensor_is_another_tensor_whose_gradient_stops():
    x = cytape.constant(3.0)
    with watching(x, persistent=True) as tape:
        c = cytape.constant(cytape.stop_gradient(x * x))
        y = c * x
    assert c.id != x.id
    assert float(tape.gradient(y, x)) == 9.0


def test_convert_to_tensor_keeps_tensors_and_their_gradients():
    x, v = cytape.constant([1.0, 2.0]), cytape.Variable(3.0)
    assert cytape.convert_to_tensor(x) is x
    assert cytape.convert_to_tensor(x, float) is x
    with watching(x, persistent=True) as tape:
        read = cytape.convert_to_tensor(v)
        narrow = cytape.convert_to_tensor(x, "float32")
        nested = cytape.convert_to_tensor([[x[0], 5.0], (v, x[1] * v)])
    assert type(read) is cytape.Tensor
    assert float(tape.gradient(read, v)) == 1.0
    assert tape.gradient(narrow, x).dtype == np.float64
    np.testing.assert_array_equal(nested.numpy(), [[1, 5], [3, 6]])
    assert float(tape.gradient(nested, v)) == 3.0
    assert tape.gradient(nested, x).numpy().tolist() == [1.0, 3.0]


def test_convert_to_tensor_makes_slices_dense():
    slices = cytape.IndexedSlices(cytape.constant([2.0]), cytape.constant([1]), (3,))
    assert cytape.convert_to_tensor(slices).numpy().tolist() == [0.0, 2.0, 0.0]


@each("data, error", [
    ([[1.0], [1.0, 2.0]], ValueError), (None, TypeError), (object(), TypeError),
    (np.array([1, None]), TypeError), (Fraction(1, 2), TypeError), ({}, TypeError),
    (np.zeros(2, [("a", float)]), TypeError)])
def test_arrays_without_numbers_are_no_tensors(data, error):
    with pytest.raises(error):
        cytape.constant(data)
