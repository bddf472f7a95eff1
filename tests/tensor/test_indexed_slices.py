"""IndexedSlices as a record; test_sparse_sums.py in tests/ops adds them up and makes them dense."""

import copy
import weakref

import numpy as np
import pytest

import cytape
from cytape import IndexedSlices


def slices(dense_shape=(4, 2)):
    values = cytape.constant(np.float32([[1, 2], [3, 4], [5, 6]]))
    return IndexedSlices(values, cytape.constant([0, 3, 3]), dense_shape)


def test_it_holds_what_it_was_made_of():
    values, indices = cytape.constant([1.0]), cytape.constant([2])
    one = IndexedSlices(values, indices, dense_shape=[4])
    assert one.values is values
    assert one.indices is indices
    assert one.dense_shape == one.shape == (4,)
    assert one.dtype == np.float64
    assert slices().dtype == np.float32


def test_the_dense_shape_may_be_unknown():
    one = slices(dense_shape=None)
    assert one.dense_shape is None and one.shape is None
    with pytest.raises(ValueError, match="dense_shape"):
        one.to_tensor()


def test_dense_slices_of_the_same_index_are_summed():
    dense = slices().to_tensor()
    assert type(dense) is cytape.Tensor
    assert dense.dtype == np.float32
    np.testing.assert_array_equal(dense.numpy(), [[1, 2], [0, 0], [0, 0], [8, 10]])


def test_the_repr_shows_all_three_parts():
    assert repr(IndexedSlices(cytape.constant([1.5]), cytape.constant([2]), (4,))) == (
        "IndexedSlices(values=Tensor([1.5]), indices=Tensor([2], dtype=int64), dense_shape=(4,))")


def test_it_has_room_for_nothing_else():
    with pytest.raises(AttributeError):
        slices().note = "mine"


def test_it_can_be_copied_and_referred_to_weakly():
    one = slices()
    again = copy.deepcopy(one)
    np.testing.assert_array_equal(again.to_tensor().numpy(), one.to_tensor().numpy())
    assert again.values is not one.values
    gone = weakref.ref(one)
    del one
    assert gone() is None


def test_the_gradient_of_a_gather_is_one():
    v = cytape.Variable(np.ones((4, 2)))
    with cytape.GradientTape() as tape:
        y = cytape.gather(v, [3, 0]) * 2.0
    gradient = tape.gradient(y, v)
    assert isinstance(gradient, IndexedSlices)
    assert gradient.shape == v.shape
    assert gradient.indices.numpy().tolist() == [3, 0]
    np.testing.assert_array_equal(gradient.values.numpy(), np.full((2, 2), 2.0))


def test_it_stands_in_for_a_tensor_where_one_is_made():
    np.testing.assert_array_equal(cytape.convert_to_tensor(slices()).numpy(),
                                  slices().to_tensor().numpy())
    v = cytape.Variable(np.ones((4, 2)))
    v.assign_sub(slices())
    np.testing.assert_array_equal(v.numpy(), 1 - slices().to_tensor().numpy())


def test_operators_and_numpys_functions_compute_with_the_dense_tensor():
    one, dense = slices(), slices().numpy()
    v = cytape.Variable(np.ones(dense.shape))
    for found, expected in (
            (0.1 * one, 0.1 * dense), (v - one, 1 - dense), (one + one, 2 * dense),
            (dense * one, dense**2), (-one, -dense), (np.sum(one), np.sum(dense)),
            (np.float64(2) * one, 2 * dense), (np.linalg.norm(one), np.linalg.norm(dense))):
        np.testing.assert_array_equal(np.asarray(found), expected)
    given = one
    one += 1.0
    np.testing.assert_array_equal(one, dense + 1)
    one = given
    assert one in [one] and len({one, one}) == 1


def test_operators_on_slices_are_differentiable():
    v = cytape.Variable(np.array([1.0, 2.0, 3.0]))
    with cytape.GradientTape() as outer:
        with cytape.GradientTape() as inner:
            y = np.sum(cytape.gather(v, [0, 2, 2]) ** 3)
        z = np.sum(0.5 * inner.gradient(y, v))
    np.testing.assert_array_equal(outer.gradient(z, v).numpy(), [3.0, 0.0, 18.0])
