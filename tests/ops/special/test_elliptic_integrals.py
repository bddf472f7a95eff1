"""Second derivatives of elliptic integrals, and derivatives for equal arguments."""

import numpy as np
import pytest

import cytape
from tests.cases import each
from tests.ops.special.precise import assert_second_derivative

mp = pytest.importorskip("mpmath")
special = pytest.importorskip("scipy.special")


def test_second_derivatives():
    for name, reference in (("ellipk", mp.ellipk), ("ellipe", mp.ellipe)):
        assert_second_derivative(
            getattr(special, name), reference, [-2.0, 0.0, 1e-8, 0.099, 0.101, 0.9])
    for phi in (0.8, 4.0, -2.0):
        assert_second_derivative(
            lambda m: special.ellipkinc(phi, m), lambda m: mp.ellipf(phi, m), [0.0, 0.2, 0.9])  # noqa: B023
        assert_second_derivative(
            lambda m: special.ellipeinc(phi, m), lambda m: mp.ellipe(phi, m), [0.0, 0.2, 0.9])  # noqa: B023


def test_equal_arguments():
    for name, degree in (("elliprf", -0.5), ("elliprg", 0.5), ("elliprd", -1.5)):
        gradients = cytape.grad(getattr(special, name), argnums=(0, 1, 2))(2.0, 2.0, 2.0)
        assert np.sum(gradients) == pytest.approx(degree * 2.0**(degree - 1))
    gradients = cytape.grad(special.elliprc, argnums=(0, 1))(2.0, 2.0)
    np.testing.assert_allclose(gradients, [-2**-1.5 / 6, -2**-1.5 / 3])
    np.testing.assert_allclose(cytape.grad(special.agm, argnums=(0, 1))(3.0, 3.0), [0.5, 0.5])
    np.testing.assert_allclose(
        cytape.grad(special.agm, argnums=(0, 1))(-3.0, -1.0),
        cytape.grad(special.agm, argnums=(0, 1))(3.0, 1.0))


@each("point", [
    (1, 1, 1, 1), (1, 1, 2, 2), (1, 2, 3, 3), (1, 2, 3, 1), (1, 2, 3, 3 + 3e-6), (0, 2, 3, 2.01)])
def test_derivatives_of_the_third_kind_where_arguments_are_equal(point):
    with np.errstate(all="ignore"):
        found = cytape.grad(special.elliprj, argnums=(0, 1, 2, 3))(*map(float, point))
    for i, slope in enumerate(found):
        if point[i]:
            expected = mp.diff(lambda x: mp.elliprj(*point[:i], x, *point[i + 1:]), point[i])  # noqa: B023
            np.testing.assert_allclose(slope, float(expected), 1e-10)


def test_an_argument_of_zero():
    with np.errstate(divide="ignore"):
        found = cytape.grad(special.elliprg, argnums=(0, 1, 2))(0.0, 1.0, 2.0)
        assert cytape.grad(special.elliprd, argnums=2)(0.0, 1.0, 2.0) == pytest.approx(
            float(mp.diff(mp.elliprd, (0, 1, 2), (0, 0, 1))))
    np.testing.assert_allclose(
        found[1:], [float(mp.diff(lambda y: mp.elliprg(0, y, 2), 1)),
                    float(mp.diff(lambda z: mp.elliprg(0, 1, z), 2))])


def test_the_principal_value_of_a_negative_argument():
    found = cytape.grad(special.elliprc, argnums=(0, 1))(1.5, -2.0)
    expected = [float(mp.diff(lambda x: mp.elliprc(x, -2), 1.5)),
                float(mp.diff(lambda y: mp.elliprc(1.5, y), -2))]
    np.testing.assert_allclose(found, expected)
