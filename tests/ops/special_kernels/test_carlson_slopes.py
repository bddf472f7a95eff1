"""Derivatives of Carlson's integrals at operands of all magnitudes, and of principal values."""

import numpy as np
import pytest

import cytape
from tests.cases import each

mp = pytest.importorskip("mpmath")
special = pytest.importorskip("scipy.special")


@each("name, point", [
    ("elliprf", (1, 2, 1e300)), ("elliprf", (1e-60, 1e60, 1)), ("elliprd", (1, 1e250, 2)),
    ("elliprd", (2e-91, 2e-57, 5e139)), ("elliprj", (1, 2, 3, 1e100)),
    ("elliprj", (2e-19, 8e-15, 3e33, 3e-18)), ("elliprj", (1e30, 1e-30, 2, 1e-25)),
    ("agm", (3, 1)), ("agm", (2, 2)), ("agm", (1e-200, 1e100))])
def test_arguments_of_all_magnitudes(name, point):
    found = cytape.grad(getattr(special, name), argnums=range(len(point)))(*map(float, point))
    with mp.workdps(300):
        for i, slope in enumerate(found):
            point = [mp.mpf(float(x)) for x in point]
            step = point[i] * mp.mpf(10)**-60
            after, before = [getattr(mp, name)(*point[:i], x, *point[i + 1:])
                             for x in (point[i] + step, point[i] - step)]
            expected = float((after - before) / (2 * step))
            assert slope == pytest.approx(expected, rel=1e-12, abs=1e-300)


def test_the_mean_of_zero_and_of_both_signs():
    slope = cytape.grad(special.agm, argnums=(0, 1))
    np.testing.assert_array_equal(slope(3.0, 0.0), [0, np.inf])
    np.testing.assert_array_equal(slope(0.0, -3.0), [np.inf, 0])
    np.testing.assert_array_equal(slope(-3.0, 2.0), [np.nan, np.nan])
    np.testing.assert_array_equal(slope(np.nan, 1.0) + slope(1.0, np.nan), 4 * [np.nan])


def test_the_curvature_of_the_mean_of_equal_numbers():
    curvature = cytape.hessian(special.agm, argnums=(0, 1))(3.0, 3.0)
    np.testing.assert_allclose(curvature, np.array([[-1, 1], [1, -1]]) / 24, 1e-12)


def test_large_last_argument_and_negative_one():
    for point in ((1.0, 2.0, 3.0, -0.5), (0.1, 0.2, 0.9, -2.0), (1.0, 2.0, 3.0, 1e7)):
        for i, slope in enumerate(cytape.grad(special.elliprj, argnums=range(4))(*point)):
            moved = np.array([point, point])
            moved[:, i] *= [1 + 1e-5, 1 - 1e-5]
            after, before = special.elliprj(*moved.T)
            assert slope == pytest.approx((after - before) / (2e-5 * point[i]), rel=1e-8)
