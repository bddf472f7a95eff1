"""Airy and Kelvin functions: scaled ones for large and complex arguments, at 0."""

import numpy as np
import pytest

import cytape

special = pytest.importorskip("scipy.special")


def test_scaled_functions_of_complex_arguments():
    z = 1.5 + 0.5j
    slope = cytape.jvp(lambda z: special.airye(z)[0], (z,), (1 + 0j,))[1]
    step = 1e-6
    difference = special.airye(z + step)[0] - special.airye(z - step)[0]
    np.testing.assert_allclose(slope, difference / (2 * step), 1e-8)
    assert np.isnan(cytape.grad(lambda z: np.real(special.airye(z)[2]))(z))


def test_scaled_functions_left_of_zero():
    slopes = cytape.jvp(special.airye, (-2.0,), (1.0,))[1]
    values = special.airy(-2.0)
    np.testing.assert_allclose(slopes[2:], [values[3], -2.0 * values[2]])
    assert np.isnan(slopes[:2]).all()


def test_kelvin_functions_at_zero():
    for name, slope in (("ber", 0.0), ("bei", 0.0), ("berp", 0.0), ("beip", 0.5)):
        assert cytape.grad(getattr(special, name))(0.0) == slope
    with np.errstate(all="ignore"):
        assert cytape.jvp(lambda x: special.kelvin(x)[2], (0.0,), (1.0,))[1] == 0.5j
