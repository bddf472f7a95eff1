"""Digamma and zeta functions where differences cancel, at poles and left of 0."""

import numpy as np
import pytest

import cytape
from tests.cases import each
from tests.ops.special.precise import assert_second_derivative

mp = pytest.importorskip("mpmath")
special = pytest.importorskip("scipy.special")
ours = pytest.importorskip("cytape.ops.special.digamma_functions")


def test_steps_of_digamma():
    for a, b in ((1e6, 1e-3), (1e-6, 1e-9), (3.0, 1e-12), (5.0, -2.0), (0.5, 1e8), (-2.5, 1.2)):
        with mp.workdps(40):
            expected = mp.psi(0, mp.mpf(a) + mp.mpf(b)) - mp.psi(0, mp.mpf(a))
        np.testing.assert_allclose(ours.psi_step(a, b), float(expected), 1e-12)


def test_trigamma():
    points = np.array([1e-8, 0.3, 1.0, 7.5, 1e6, -0.5, -3.2, -7.9])
    with mp.workdps(40):
        expected = [float(mp.psi(1, mp.mpf(x))) for x in points]
    found = cytape.grad(lambda x: np.sum(special.psi(x)))(points)
    np.testing.assert_allclose(found, expected, 1e-12)


def test_second_derivatives_of_zeta():
    assert_second_derivative(
        special.zetac, lambda x: mp.zeta(x), [1.5, 3.0, 20.0, -20.5, -170.3, -249.3])
    assert_second_derivative(
        lambda x: ours.zeta(x, 2.5), lambda x: mp.zeta(x, 2.5), [1.5, 3.0, 20.0])


def test_slopes_of_zeta_near_0():
    for s in (-1e-12, -1e-6, -0.5, -1.0, -1.5):
        for f in (ours.zeta, ours.zetac):
            slope = cytape.grad(f)
            assert slope(s) == pytest.approx(float(mp.zeta(s, 1, 1)), rel=1e-12)
            assert cytape.grad(slope)(s) == pytest.approx(float(mp.zeta(s, 1, 2)), rel=1e-12)


def test_zeta_of_arrays():
    for given in ((2.0,), (2.0, 1.5)):
        assert ours.zeta(*given) == special.zeta(*given)
    slope = cytape.function(cytape.grad(ours.zeta, argnums=1))(3.0, 2.0)
    assert slope == pytest.approx(-3 * special.zeta(4.0, 2.0))


@each("s", [0.5, -2.5])
def test_derivatives_of_zeta_are_nan_where_scipys_value_is(s):
    for i in (0, 1):
        slope = cytape.grad(ours.zeta, argnums=i)
        curvature = cytape.grad(slope, argnums=i)
        assert np.isnan([special.zeta(s, 1.5), slope(s, 1.5), curvature(s, 1.5)]).all()
