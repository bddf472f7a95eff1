"""Linear recurrences in both directions, and what a 0 keeps from infinite factors."""

import numpy as np

import cytape
from cytape.ops.linear_recurrences import after, before, recurrence_op
from cytape.testing import check_grads
from tests.cases import sampled


@sampled(2, backwards=[False, True], place=[lambda f: f, cytape.function])
def test_derivatives_to_third_order(backwards, place):
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 3, 5))
    check_grads(place(lambda a, b: recurrence_op(a * a, b * b, backwards=backwards)), [a, b],
                order=3)


def test_a_zero_meets_infinite_factors_and_begins_anew():
    a, b = np.array([np.nan, np.inf, 0.0, 2.0]), np.array([0.0, 3.0, 1.0, 0.0])
    np.testing.assert_array_equal(recurrence_op(a, b), [0, 3, 1, 2])
    np.testing.assert_array_equal(recurrence_op(a, b[::-1], backwards=True), [np.inf, 1, 3, 0])


def test_neighbours():
    y = cytape.constant(np.array([[1.0, 2.0, 3.0]]))
    np.testing.assert_array_equal(before(y), [[0, 1, 2]])
    np.testing.assert_array_equal(after(y), [[2, 3, 0]])
