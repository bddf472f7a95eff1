"""Sums of sparse gradients, and making them dense."""

import subprocess
import sys

import numpy as np
import pytest

import cytape
from cytape import IndexedSlices
from cytape.ops.sparse_sums import aggregate_indexed_slices, densify
from tests.cases import each


def slices(values, indices, dense_shape=(4,), dtype="int64"):
    if not isinstance(values, IndexedSlices):
        values = cytape.constant(values)
    return IndexedSlices(values, cytape.constant(indices, dtype), dense_shape)


def test_D_2_20_nothing_sums_to_none():
    assert aggregate_indexed_slices([]) is None
    assert aggregate_indexed_slices([None, None]) is None


def test_D_2_20_one_is_itself():
    one = slices([1.0], [2])
    assert aggregate_indexed_slices([one]) is one
    assert aggregate_indexed_slices([None, one]) is one


def test_D_2_20_several_are_concatenated():
    total = aggregate_indexed_slices([slices([1.0, 2.0], [0, 3]), None, slices([4.0], [3])])
    np.testing.assert_array_equal(total.values.numpy(), [1, 2, 4])
    np.testing.assert_array_equal(total.indices.numpy(), [0, 3, 3])
    assert total.dense_shape == (4,)


def test_D_2_20_one_dense_makes_the_sum_dense():
    dense = cytape.constant([1.0, 1.0, 1.0, 1.0])
    total = aggregate_indexed_slices([slices([1.0], [0]), dense, slices([4.0, 5.0], [3, 3])])
    assert isinstance(total, cytape.Tensor)
    np.testing.assert_array_equal(total.numpy(), [2, 1, 1, 10])


def test_D_2_20_nested_slices_compose_their_indices():
    inner = slices([[1.0], [2.0]], [2, 0], dense_shape=(3, 1))
    nested = slices(inner, [5, 6, 7], dense_shape=(9, 1))
    total = aggregate_indexed_slices([nested, slices([[4.0]], [1], dense_shape=(9, 1))])
    np.testing.assert_array_equal(total.indices.numpy(), [7, 5, 1])
    np.testing.assert_array_equal(total.values.numpy(), [[1], [2], [4]])
    assert total.dense_shape == (9, 1)
    expected = np.zeros((9, 1))
    expected[[7, 5], 0] = 1, 2
    np.testing.assert_array_equal(nested.to_tensor().numpy(), expected)


@each("dtypes", [("int32", "int32"), ("int32", "int64"), ("uint8", "int16")])
def test_D_2_20_index_dtypes_become_int64(dtypes):
    total = aggregate_indexed_slices([slices([1.0], [1], dtype=dtype) for dtype in dtypes])
    assert total.indices.dtype == np.int64


def test_duplicates_are_summed_in_the_dtype_of_the_values():
    dense = slices(np.float32([[1, 2], [3, 4], [5, 6]]), [1, 1, 0], (3, 2)).to_tensor()
    np.testing.assert_array_equal(dense.numpy(), [[5, 6], [4, 6], [0, 0]])
    assert dense.dtype == np.float32


def test_no_slices_are_zeros():
    np.testing.assert_array_equal(slices(np.zeros((0, 2)), [], (3, 2)).to_tensor().numpy(), 0)


def test_the_dense_shape_must_be_known():
    with pytest.raises(ValueError, match="dense_shape"):
        slices([1.0], [0], dense_shape=None).to_tensor()


def test_densify_is_differentiable():
    values = cytape.constant([1.0, 2.0, 3.0])
    with cytape.GradientTape() as tape:
        tape.watch(values)
        dense = densify(IndexedSlices(values, cytape.constant([2, 0, 2]), (3,)))
        y = np.sum(dense * dense)
    gradient = cytape.convert_to_tensor(tape.gradient(y, values))
    np.testing.assert_array_equal(gradient.numpy(), [8, 4, 8])


def test_slices_say_what_they_are():
    one = slices([1.0], [2])
    assert one.dtype == np.float64
    assert one.shape == (4,)
    assert "dense_shape=(4,)" in repr(one)


def test_a_warning_of_many_elements_points_at_the_user(monkeypatch):
    monkeypatch.setattr("cytape.ops.sparse_sums.MANY_ELEMENTS", 4)
    with pytest.warns(UserWarning, match="4 elements") as caught:
        slices([1.0], [0]).to_tensor()
    assert caught[0].filename == __file__


def test_slices_are_made_dense_in_a_fresh_process():
    """No module that a program imports later is needed."""
    script = ("import cytape; x = cytape.constant([1.0, 2.0])\n"
              "assert cytape.grad(lambda x: cytape.gather(x, [1]).sum())(x).tolist() == [0, 1]")
    subprocess.run([sys.executable, "-c", script], check=True)
