"""Axes that are cut off or filled up."""

import numpy as np

import cytape
from cytape.ops.submodules.cut_or_pad import cut_or_pad_op, with_extent
from tests.cases import each


@each("n", [0, 1, 3, 5])
def test_kept_elements_stay_in_place(n):
    x = np.arange(6.0).reshape(2, 3)
    found = cut_or_pad_op(x, axis=1, n=n)
    assert found.shape == (2, n)
    np.testing.assert_array_equal(found[:, :3], x[:, :n])
    np.testing.assert_array_equal(found[:, 3:], 0)
    gradient = cytape.grad(lambda x: np.sum(cut_or_pad_op(x, axis=1, n=n)))(x)
    np.testing.assert_array_equal(gradient, np.broadcast_to(np.arange(3) < n, (2, 3)))


def test_a_shape_with_another_extent():
    assert with_extent((2, 3, 4), 1, 7) == (2, 7, 4)
    assert with_extent((2,), 0, None) == (None,)
