"""The way from tensors to the tape and back: seeds, dtypes, and what takes no part."""

import numpy as np
import pytest

import cytape
from cytape.autodiff.seeds import convert_output_gradients, densify, zeros
from cytape.errors import InvalidGradientError
from tests.cases import each

# -- convert_output_gradients ----------------------------------------------------------------------


F32 = cytape.constant([1.0, 2.0], "float32")
F64 = cytape.constant([1.0, 2.0])
INTEGERS = cytape.constant([1, 2])
SLICES = cytape.IndexedSlices(cytape.constant([5.0]), cytape.constant([1]), (2,))


def test_no_output_gradients_are_none():
    assert convert_output_gradients([F64], None) is None


@each(gradient=[
    np.array([3.0, 4.0]), cytape.constant([3.0, 4.0]), np.float32([3, 4]), np.array([3, 4]),
    cytape.Variable([3.0, 4.0]),
], target=[F32, F64])
def test_an_output_gradient_gets_the_dtype_of_its_target(gradient, target):
    (found,) = convert_output_gradients([target], gradient)
    assert type(found) is cytape.Tensor
    assert found.spec is target.spec
    assert found.numpy().tolist() == [3.0, 4.0]


def test_structures_are_flattened_and_none_stays():
    found = convert_output_gradients([F64, F32, F64], {"a": None, "b": [F32, (None,)]})
    assert found[0] is None and found[1] is F32 and found[2] is None


def test_the_gradient_of_a_target_without_gradients_is_ignored():
    assert convert_output_gradients([INTEGERS], "whatever") == [None]


def test_sparse_output_gradients():
    (found,) = convert_output_gradients([F64], SLICES)
    assert found is SLICES
    (found,) = convert_output_gradients([F32], SLICES)
    assert found.dtype == np.float32
    assert found.numpy().tolist() == [0.0, 5.0]


@each("gradient, words", [
    ([F64, F64], "2 entries for 1 targets"), ([], "0 entries for 1 targets"),
    (np.ones(3), r"output_gradients\[0\] has shape \(3,\), its target \(2,\)"),
    (1.0, r"output_gradients\[0\] has shape \(\)"),
    (np.array([1j, 2]), r"output_gradients\[0\] is complex128, its target float64"),
    (object(), r"output_gradients\[0\] cannot be converted"),
    (np.array([None, 1.0]), r"output_gradients\[0\] cannot be converted"),
])
def test_output_gradients_that_do_not_fit(gradient, words):
    with pytest.raises(InvalidGradientError, match=words) as caught:
        convert_output_gradients([F64], gradient)
    assert isinstance(caught.value, ValueError)


def test_the_position_in_the_message_is_that_of_the_target():
    with pytest.raises(InvalidGradientError, match=r"output_gradients\[1\]"):
        convert_output_gradients([F64, F64], [None, np.ones(3)])


# -- small helpers ---------------------------------------------------------------------------------


def test_zeros():
    found = zeros((2, 3), np.dtype("complex64"))
    assert type(found) is cytape.Tensor
    assert (found.shape, found.dtype) == ((2, 3), np.complex64)
    assert not found.numpy().any()


def test_densify():
    assert densify(F64) is F64
    assert densify(SLICES).numpy().tolist() == [0.0, 5.0]
