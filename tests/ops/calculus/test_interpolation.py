"""Piecewise linear interpolation: at the points, outside of them, and where there are few."""

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from tests.cases import each

XP, FP = np.array([0.0, 1.0, 3.0]), np.array([2.0, 4.0, 1.0])


def slope(x, *points, **options):
    return cytape.grad(lambda x: np.interp(x, *points, **options))(x)


@each("x, expected", [(0.0, 2.0), (1.0, -1.5), (3.0, -1.5), (-0.1, 0.0), (3.1, 0.0), (0.5, 2.0)])
def test_at_a_point_the_derivative_is_that_to_the_right(x, expected):
    assert slope(x, XP, FP) == expected


def test_points_that_coincide_and_a_single_one():
    assert slope(1.0, [0.0, 1.0, 1.0, 2.0], [0.0, 1.0, 5.0, 6.0]) == 1.0
    assert slope(0.0, [0.0], [5.0]) == 0.0


def test_values_outside_have_the_gradient_there():
    def total(left, right):  # for which numpy.interp does not ask
        return np.sum(cnp.interp([-1.0, 0.5, 7.0, 9.0], XP, FP, left, right))

    assert cytape.grad(total, argnums=(0, 1))(0.0, 0.0) == (1.0, 2.0)
    gradient = cytape.grad(lambda fp: np.sum(np.interp([-1.0, 0.5, 7.0], XP, fp)))(FP)
    np.testing.assert_array_equal(gradient, [1.5, 0.5, 1.0])


def test_points_move_values_along():
    f = lambda xp: np.interp(0.5, xp, FP)  # noqa: E731
    cytape.testing.check_grads(f, [XP], order=2)


@each("ends", [{}, {"left": 7.0, "right": -7.0}])
def test_derivatives_where_some_are_asked_for_infinitely_far_outside(ends):
    def total(x, xp, fp):
        return np.sum(cnp.interp(x, xp, fp, **ends))

    gradients = cytape.grad(total, argnums=(0, 1, 2))
    for d in (cytape.jacrev, cytape.jacfwd):
        for f in (total, lambda *args: cnp.concatenate(gradients(*args))):
            far, near = (d(f, argnums=(0, 1, 2))(np.array([-end, 0.5, end]), XP, FP)
                         for end in (np.inf, 9.0))
            np.testing.assert_array_equal(far, near)


def test_no_values_at_points_that_only_a_run_knows():
    with pytest.raises(ValueError, match="array of sample points is empty"):
        cytape.function(lambda xp: np.interp(0.5, xp, []),
                        input_signature=[cytape.Spec.of((None,), float)])(XP)


def test_of_several_last_points_in_one_place_the_last_counts():
    xp, x, weights = np.array([0.0, 2.0, 2.0]), np.array([2.0, 3.0, 1.0]), [1.0, 10.0, 100.0]
    gradient = cytape.grad(lambda fp: np.sum(np.interp(x, xp, fp) * weights))
    for found in gradient, cytape.function(gradient):
        np.testing.assert_array_equal(found(np.array([0.0, 1.0, 5.0])), [50.0, 50.0, 11.0])


def test_of_periods_the_derivative_is_that_to_the_right_also_where_one_ends():
    points = ([0.0, 0.5], [0.0, 1.0])
    for x in (0.0, 1.0, -1e-17, -1e-300, 2.0):  # a remainder of -1e-17 is 1
        assert slope(x, *points, period=1.0) == 2.0
        np.testing.assert_array_equal(
            cnp.interp(cytape.constant(x), *points, period=1.0), np.interp(x, *points, period=1.0))
    assert slope(0.5, *points, period=1.0) == slope(-0.25, *points, period=1.0) == -2.0
    assert slope(-1e-17, [0.0], [3.0], period=1.0) == 0.0
