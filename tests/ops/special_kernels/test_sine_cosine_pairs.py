"""Sine and cosine of pi x**2 / 2, also of squares without digits behind the point, and over x."""

import numpy as np
import pytest

from cytape.ops.special_kernels.sine_cosine_pairs import sine_cosine_of_square, sine_cosine_over

mp = pytest.importorskip("mpmath")


def test_sine_and_cosine():
    for x in (0.3, -1.7, 1e4 + 0.1, 123456789.1, 1e12 + 0.1, 7e15 / 3, 3e200, 0.4 + 0.3j,
              3e9 + 1e-9j):
        with mp.workdps(900):
            angle = mp.pi / 2 * mp.mpmathify(x)**2
            expected = [complex(mp.sin(angle)), complex(mp.cos(angle))]
        np.testing.assert_allclose(sine_cosine_of_square(x), expected, 1e-14, 1e-100)


def test_quarter_turns():
    x = np.sqrt(np.linspace(0, 0.99, 34)) * [[1], [-1]]
    for y, function in zip(sine_cosine_of_square(x), (np.sin, np.cos), strict=True):
        np.testing.assert_allclose(y, function(np.pi / 2 * x * x), 1e-14, 1e-16)
    with np.errstate(invalid="ignore"):
        assert np.isnan(sine_cosine_of_square([np.inf, -np.inf, np.nan])).all()


def test_quotients():
    for x in (0.3, -2.5, 0.4 + 0.3j):
        np.testing.assert_allclose(sine_cosine_over(x), [np.sin(x) / x, np.cos(x) / x], 1e-15)
    with np.errstate(divide="ignore"):
        assert sine_cosine_over(0.0) == (1, np.inf)


def test_types_are_kept():
    for ufunc in (sine_cosine_of_square, sine_cosine_over):
        for dtype in (np.float32, np.float64, np.complex64, np.complex128):
            assert [y.dtype for y in ufunc(np.ones(2, dtype))] == [dtype] * 2
