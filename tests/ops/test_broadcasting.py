"""Operands that are repeated along axes, and the errors of shapes that do not fit."""

import numpy as np

import cytape
import cytape.numpy as cnp


def test_a_subclass_may_be_kept():
    x = np.ones((2, 3))
    assert cnp.broadcast_to(x, (2, 2, 3), subok=True).shape == (2, 2, 3)
    result = cnp.broadcast_to(cytape.constant(x), (2, 2, 3), subok=True)
    np.testing.assert_array_equal(result, np.ones((2, 2, 3)))


def test_arrays_of_objects_stay_arrays():
    x = cytape.constant([1.0, 2.0])
    first, second, third = np.broadcast_arrays(x, [[1.0], [2.0]], np.array([None]))
    assert type(first) is cytape.Tensor and np.shape(second) == (2, 2)
    assert first.tolist() == [[1.0, 2.0], [1.0, 2.0]]
    assert third.tolist() == [[None, None], [None, None]]
