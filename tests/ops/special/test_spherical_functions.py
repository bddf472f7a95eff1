"""Spherical functions at 0, and the derivatives that spherical harmonics return."""

import numpy as np
import pytest

import cytape
from tests.cases import each

special = pytest.importorskip("scipy.special")
ours = pytest.importorskip("cytape.scipy.special")


@each("n, derivatives", [(0, [0, -1 / 3]), (1, [1 / 3, 0]), (2, [0, 2 / 15])])
def test_derivatives_at_zero(n, derivatives):
    slope = cytape.grad(lambda z: ours.spherical_jn(n, z))
    assert [slope(0.0), cytape.grad(slope)(0.0)] == pytest.approx(derivatives)


def test_harmonics_return_their_derivatives():
    theta, phi = np.array([0.3, 1.2]), np.array([-0.4, 2.0])
    found = ours.sph_harm_y(3, -1, cytape.constant(theta), cytape.constant(phi), diff_n=2)
    for one, expected in zip(found, special.sph_harm_y(3, -1, theta, phi, diff_n=2), strict=True):
        np.testing.assert_allclose(one.numpy(), expected, 1e-10, 1e-14)
    with pytest.raises(ValueError, match="orders 0, 1, and 2"):
        ours.sph_harm_y(3, -1, cytape.constant(theta), 0.0, diff_n=3)
    assert isinstance(ours.sph_harm_y(3, -1, theta, phi), np.ndarray)
    found = ours.sph_harm_y([3, 2], [-1, 2], cytape.constant(theta), phi, diff_n=2)
    for one, expected in zip(
            found, special.sph_harm_y([3, 2], [-1, 2], theta, phi, diff_n=2), strict=True):
        np.testing.assert_allclose(one.numpy(), expected, 1e-10, 1e-14)


def test_the_gradient_of_a_harmonic():
    slope = cytape.grad(lambda theta: np.real(ours.sph_harm_y(2, 1, theta, 0.4)))
    assert slope(0.7) == pytest.approx(special.sph_harm_y(2, 1, 0.7, 0.4, diff_n=1)[1][0].real)


@each("n, m, third", [(3, 2, -4.034050225874251), (3, -3, -0.6019164829197381)])  # of mpmath
def test_a_third_derivative_of_a_harmonic_of_the_largest_orders(n, m, third):
    harmonic = lambda theta: np.real(ours.sph_harm_y(n, m, theta, 0.4))  # noqa: E731
    assert cytape.grad(cytape.grad(cytape.grad(harmonic)))(0.7) == pytest.approx(third)
