"""Elements of lines: several that meet in one place."""

import numpy as np

import cytape
from cytape.ops.adjoints.line_elements import put_along, take_along
from cytape.tensor.values.spec import symbolic_spec

INDICES = np.array([[0, 0], [2, 1]])


def test_an_element_that_is_taken_twice_has_both_gradients():
    gradient = cytape.grad(lambda x: np.sum(take_along(x, INDICES) * [[1.0, 2.0], [3.0, 4.0]]))(
        np.zeros((2, 3)))
    np.testing.assert_array_equal(gradient, [[3, 0, 0], [0, 4, 3]])


def test_halves_are_added_up_in_single_precision():
    many = np.ones((1, 4096), np.float16)
    found = put_along(cytape.constant(many), np.zeros((1, 4096), int),
                      symbolic_spec((1, 2), np.float16))
    assert (found.dtype, found.tolist()) == (np.float16, [[4096, 0]])
