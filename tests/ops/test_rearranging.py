"""Special cases of moving elements about: bad arguments, and gradients of copies."""

import numpy as np
import pytest

import cytape
from cytape.ops import rearranging as ops
from tests.cases import each


def test_the_gradient_of_an_element_is_the_sum_over_its_copies():
    x = cytape.constant([1.0, 2.0, 3.0])
    weights = np.arange(7.0)
    with cytape.GradientTape(persistent=True) as tape:
        tape.watch(x)
        wrapped = np.pad(x, 2, "wrap") * weights
        repeated = np.repeat(x, [3, 0, 4]) * weights
    np.testing.assert_array_equal(tape.gradient(wrapped, x).numpy(), [7, 9, 5])
    np.testing.assert_array_equal(tape.gradient(repeated, x).numpy(), [3, 0, 18])


def test_a_number_has_an_axis_0_to_repeat_along_as_in_numpy():
    assert ops.repeat(cytape.constant(2.0), 2, axis=0).shape == (2,)


@each("function", [
    lambda x: np.roll(x, 1.5), lambda x: np.tril(x, 1.0), lambda x: np.triu(x, -1.0)])
def test_distances_that_are_floats(function):
    x = np.arange(12.0).reshape(3, 4) + 1
    np.testing.assert_array_equal(function(cytape.constant(x)).numpy(), function(x))
    gradient = cytape.grad(lambda x: np.sum(function(x) ** 2))(x)
    np.testing.assert_array_equal(gradient, 2 * np.where(np.isin(x, function(x)), x, 0))


def test_a_gradient_that_there_is_none_of():
    """NumPy's triangles of distances between integers are no triangles."""
    x = np.ones((3, 4))
    np.testing.assert_array_equal(np.triu(cytape.constant(x), 1.5).numpy(), np.triu(x, 1.5))
    with pytest.raises(ValueError, match=r"has no gradient with the attributes .*'k': 1.5"):
        cytape.grad(lambda x: np.sum(np.triu(x, 1.5)))(x)
