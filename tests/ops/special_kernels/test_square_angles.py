"""Sine and cosine of pi x**2 / 2, also where the square has no digits behind the point."""

import numpy as np
import pytest

from cytape.ops.special_kernels.square_angles import sine_cosine_of_square

mp = pytest.importorskip("mpmath")


def test_sine_and_cosine():
    for x in (0.3, -1.7, 1e4 + 0.1, 123456789.1, 1e12 + 0.1, 7e15 / 3, 3e200, 0.4 + 0.3j,
              3e9 + 1e-9j):
        with mp.workdps(900):
            angle = mp.pi / 2 * mp.mpmathify(x)**2
            expected = [complex(mp.sin(angle)), complex(mp.cos(angle))]
        np.testing.assert_allclose(sine_cosine_of_square(x), expected, 1e-14, 1e-100)


def test_types_are_kept():
    for dtype in (np.float32, np.float64, np.complex64, np.complex128):
        assert [y.dtype for y in sine_cosine_of_square(np.ones(2, dtype))] == [dtype] * 2
