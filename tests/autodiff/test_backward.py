"""The way from tensors to the tape and back: seeds, dtypes, and what takes no part."""

import numpy as np
import pytest

import cytape
from cytape.autodiff.backward import (
    compute_gradients,
    convert_output_gradients,
    densify,
    zeros,
)
from cytape.errors import InvalidGradientError, TapeStateError
from cytape.tensor.state import Recorder


@pytest.fixture
def square():
    """Return a function that records x * x and gives recorder, x and y."""

    def square(x, persistent=False):
        x = cytape.constant(x)
        recorder = Recorder(persistent)
        recorder.watch(x.id)
        recorder.push()
        y = x * x
        recorder.pop()
        return recorder, x, y

    return square


# -- compute_gradients -----------------------------------------------------------------------------


def test_gradients_come_in_the_order_of_the_sources(square):
    recorder, x, y = square([1.0, 2.0], persistent=True)
    stranger = cytape.constant(1.0)
    found = compute_gradients(recorder, [y], [stranger, y, x, x])
    assert found[0] is None
    assert [g.numpy().tolist() for g in found[1:]] == [[1.0, 1.0], [2.0, 4.0], [2.0, 4.0]]
    assert compute_gradients(recorder, [], [x]) == [None]
    assert compute_gradients(recorder, [y], []) == []


def test_targets_are_weighted_and_summed(square):
    recorder, x, y = square([1.0, 2.0], persistent=True)
    weight = cytape.constant([10.0, 100.0])
    (found,) = compute_gradients(recorder, [y, x, y], [x], [weight, None, None])
    assert found.numpy().tolist() == [2 * 10 + 1 + 2, 4 * 100 + 1 + 4]
    (found,) = compute_gradients(recorder, [x], [x], [weight])
    assert found.numpy().tolist() == [10.0, 100.0]


@pytest.mark.parametrize("data", [[1, 2], ["a", "b"], [True, False]])
def test_what_cannot_have_a_gradient_takes_no_part(square, data):
    recorder, x, y = square([1.0, 2.0], persistent=True)
    other = cytape.constant(data)
    found = compute_gradients(recorder, [other, y], [x, other])
    assert found[0].numpy().tolist() == [2.0, 4.0]
    assert found[1] is None


@pytest.mark.parametrize("persistent, keep, again", [
    (False, False, False), (False, True, True), (True, False, True),
])
def test_a_recorder_may_be_kept(square, persistent, keep, again):
    recorder, x, y = square([1.0, 2.0], persistent)
    for attempt in range(2):
        if attempt and not again:
            with pytest.raises(TapeStateError):
                compute_gradients(recorder, [y], [x], keep=keep)
        else:
            (found,) = compute_gradients(recorder, [y], [x], keep=keep)
            assert found.numpy().tolist() == [2.0, 4.0]
    assert recorder.num_ops == (1 if again else 0)


# -- convert_output_gradients ----------------------------------------------------------------------


F32 = cytape.constant([1.0, 2.0], "float32")
F64 = cytape.constant([1.0, 2.0])
INTEGERS = cytape.constant([1, 2])
SLICES = cytape.IndexedSlices(cytape.constant([5.0]), cytape.constant([1]), (2,))


def test_no_output_gradients_are_none():
    assert convert_output_gradients([F64], None) is None


@pytest.mark.parametrize("gradient", [
    np.array([3.0, 4.0]), cytape.constant([3.0, 4.0]), np.float32([3, 4]), np.array([3, 4]),
    cytape.Variable([3.0, 4.0]),
])
@pytest.mark.parametrize("target", [F32, F64])
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


@pytest.mark.parametrize("gradient, words", [
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
