"""Comparisons of derivatives with those of mpmath at 40 digits."""

import numpy as np
import pytest

import cytape

RELATIVE = 1e-10


def _expected(reference, points, order):
    mp = pytest.importorskip("mpmath")
    with mp.workdps(40):
        return [float(mp.re(mp.diff(reference, mp.mpf(x), order))) for x in points]


def assert_derivative(function, reference, points, relative=RELATIVE):
    """Compare derivatives of an elementwise function at points with mpmath's."""
    points = np.array(points)
    expected = _expected(reference, points, 1)
    found = cytape.grad(lambda x: np.sum(function(x)))(points)
    np.testing.assert_allclose(found, expected, relative)
    tangents = cytape.jvp(function, (points,), (np.ones_like(points),))[1]
    np.testing.assert_allclose(tangents, expected, relative)


def assert_second_derivative(function, reference, points, relative=1e-8):
    points = np.array(points)
    expected = _expected(reference, points, 2)
    slope = cytape.grad(lambda x: np.sum(function(x)))
    found = cytape.grad(lambda x: np.sum(slope(x)))(points)
    np.testing.assert_allclose(found, expected, relative)
    tangents = cytape.jvp(slope, (points,), (np.ones_like(points),))[1]
    np.testing.assert_allclose(tangents, expected, relative)
