"""Derivatives of Hurwitz's zeta function of several orders, against mpmath's."""

import numpy as np
import pytest

import cytape
from tests.cases import each

mp = pytest.importorskip("mpmath")
special = pytest.importorskip("scipy.special")
zeta_derivative = pytest.importorskip("cytape.ops.special_kernels.zeta_sums").zeta_derivative


@each("s, q", [
    (1.01, 1), (1.6, 0.01), (2, 1), (5.5, 2.5), (39, 1), (100, 50), (0.5, 1), (2 + 3j, 1),
    (2 - 1j, 0.4)])
def test_orders(s, q):
    for order in (0, 1, 2, 5, 15):
        expected = complex(mp.zeta(s, q, order))
        np.testing.assert_allclose(zeta_derivative(order, s, q), expected, 1e-11)


def test_limits():
    with np.errstate(all="ignore"):
        found = zeta_derivative(1, [1, np.inf, 2, np.nan, 2, 2], [1, 1, -1.5, 1, np.nan, 1])
    np.testing.assert_array_equal(found[:5], [-np.inf, 0, np.nan, np.nan, np.nan])
    assert np.isnan(zeta_derivative(16, 2.0, 1.0))
    assert zeta_derivative(1, np.float32(2), np.float32(1)).dtype == np.float32


def test_mixed_derivatives():
    zeta = lambda s, q: special.zeta(s, q)  # noqa: E731
    for place, second, orders in ((0, 1, (1, 1)), (1, 0, (1, 1)), (0, 0, (2, 0)), (1, 1, (0, 2))):
        found = cytape.grad(cytape.grad(zeta, argnums=place), argnums=second)(2.5, 1.5)
        with mp.workdps(40):
            expected = mp.diff(lambda s, q: mp.zeta(s, q), (2.5, 1.5), orders)
        assert found == pytest.approx(float(expected), 1e-10)


def test_left_of_zero_beside_right():
    x = np.array([-1.5, 0.5, 3.0])
    first = lambda x: cytape.grad(lambda x: np.sum(special.zeta(x)))(x)  # noqa: E731
    second = cytape.grad(lambda x: np.sum(first(x)))
    for order, slope in ((1, first), (2, second)):
        expected = [float(mp.zeta(a, 1, order)) for a in x]
        np.testing.assert_allclose(slope(x), expected, 1e-11)
        np.testing.assert_allclose(cytape.function(slope)(x), expected, 1e-11)
