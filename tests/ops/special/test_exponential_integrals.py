"""Derivatives of integrals of exponentials at 0 and for complex arguments."""

import numpy as np
import pytest

import cytape
from tests.ops.special.precise import assert_second_derivative

mp = pytest.importorskip("mpmath")
special = pytest.importorskip("scipy.special")


def test_sines_over_their_arguments_at_zero():
    for function, curvature in ((special.sici, -1 / 3), (special.shichi, 1 / 3)):
        slope = cytape.grad(lambda x: function(x)[0])  # noqa: B023
        with np.errstate(all="ignore"):
            assert slope(0.0) == 1
            assert cytape.grad(slope)(0.0) == 0
            assert cytape.grad(cytape.grad(slope))(0.0) == pytest.approx(curvature)


def test_second_derivatives():
    assert_second_derivative(
        special.spence, lambda z: mp.polylog(2, 1 - z).real,
        [0.2, 0.49, 0.51, 1, 1 + 1e-9, 1.6, 30])
    assert_second_derivative(
        lambda x: special.fresnel(x)[0], mp.fresnels, [0.3, 40.0])
    assert_second_derivative(
        special.dawsn, lambda x: mp.sqrt(mp.pi) / 2 * mp.exp(-x * x) * mp.erfi(x),
        [0.0, 3.0, 14.9, 15.1])


def test_profiles_without_a_width():
    x = np.array([-2.0, 0.3])
    for place, cauchy in enumerate([
            lambda x, s, g: -2 * x * g / (x * x + g * g)**2 / np.pi, lambda x, s, g: 0 * x,
            lambda x, s, g: (x * x - g * g) / (x * x + g * g)**2 / np.pi]):
        slope = cytape.grad(lambda *given: np.sum(special.voigt_profile(*given)), argnums=place)
        found = slope(x, 0 * x, 0 * x + 2)
        np.testing.assert_allclose(found, cauchy(x, 0, 2), atol=1e-15)
    gauss = np.exp(-0.5 * x * x) / np.sqrt(2 * np.pi)
    found = cytape.grad(lambda x: np.sum(special.voigt_profile(x, 1.0, 0.0)))(x)
    np.testing.assert_allclose(found, -x * gauss)


def test_complex_arguments():
    points = [0.3 + 0.4j, -2.0 + 3.0j, 20.0 + 1.0j, -1.0 - 2.0j]
    for function, slope in (
            (special.exp1, lambda z: -mp.exp(-z) / z), (special.expm1, mp.exp),
            (special.erfi, lambda z: 2 / mp.sqrt(mp.pi) * mp.exp(z * z)),
            (lambda z: special.sici(z)[1], lambda z: mp.cos(z) / z),
            (special.wofz, lambda z: mp.diff(lambda z: mp.exp(-z * z) * mp.erfc(-1j * z), z))):
        for z in points:
            found = cytape.jvp(function, (z,), (1 + 0j,))[1]
            np.testing.assert_allclose(found, complex(slope(mp.mpmathify(z))), 1e-10)


def test_orders_are_truncated_as_in_scipy():
    for name in ("expn", "yn", "kn"):
        function = getattr(special, name)
        with pytest.warns(RuntimeWarning, match="truncated"):
            slope = cytape.grad(lambda x: function(1.83, x))(0.4)  # noqa: B023
        assert slope == cytape.grad(lambda x: function(1, x))(0.4)  # noqa: B023
