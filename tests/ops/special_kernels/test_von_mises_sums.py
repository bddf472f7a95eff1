"""Distribution function of von Mises and derivatives in kappa, against mpmath and each other."""

import numpy as np
import pytest

from tests.cases import each

sums = pytest.importorskip("cytape.ops.special_kernels.von_mises_sums")


@each("x, kappa, value, slope, curvature", [  # of integrals by mpmath at 60 digits
    (1.0, 0.001, 0.6592888854320617, 0.13396039719719433, 0.03608118550974631),
    (-0.3, 3.0, 0.3119716678847812, -0.033019332870687146, 0.008069682967169452),
    (0.2, 19.5, 0.8094547369867197, 0.006188336379478392, -0.00028441451039577787),
    (0.2, 60.0, 0.9386270828643242, 0.0015660652128560869, -4.432548070344938e-05),
    (-0.03, 5000.0, 0.016953002728592747, -8.922169348733265e-06, 4.906936680874937e-09)])
def test_values_and_derivatives(x, kappa, value, slope, curvature):
    for turns in (0, 3):
        place = x + 2 * np.pi * turns
        np.testing.assert_allclose(sums.vonmises(place, kappa), value + turns, 1e-13)
        np.testing.assert_allclose(sums.vonmises_in_kappa(place, kappa), slope, 1e-10)
        np.testing.assert_allclose(sums.vonmises_in_kappas(place, kappa), curvature, 1e-9)
    density = np.exp(kappa * (np.cos(x) - 1)) / (2 * np.pi * np.i0(min(kappa, 500.0)))
    found = sums.vonmises_slopes(x, kappa)
    assert found[1] == sums.vonmises_in_kappa(x, kappa)
    if kappa < 500:
        np.testing.assert_allclose(found[0], density * np.exp(kappa), 1e-13)


def test_both_formulas_agree_and_numbers_outside_of_the_domain_are_nan():
    x = np.linspace(-3, 3, 13)
    for f in (sums.vonmises, sums.vonmises_in_kappa, sums.vonmises_in_kappas):
        np.testing.assert_allclose(f(x, 20.0), f(x, np.nextafter(20.0, 0)), 1e-6, 1e-14)
        assert np.isnan(f(1.0, -1.0)) and np.isnan(f(np.inf, 1.0)) and np.isnan(f(1.0, np.nan))
        assert f(np.float32(1), np.float32(2)).dtype == np.float32


def test_derivatives_at_the_opposite_point_are_small():
    for x in (np.pi, 3.1415926):
        for f in (sums.vonmises_in_kappa, sums.vonmises_in_kappas):
            np.testing.assert_allclose(f(x, np.array([20.0, 25.0, 500.0])), 0, atol=1e-16)
