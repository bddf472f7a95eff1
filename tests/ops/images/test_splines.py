"""Spline filters and interpolation at coordinates: values, gradients, boundary modes."""

import numpy as np
import pytest

import cytape
from cytape.testing import check_grads
from tests.cases import each, sampled
from tests.ops.images.test_correlations import MODES, agree_with_scipy
from tests.ways import check

scipy_ndimage = pytest.importorskip("scipy.ndimage")
ndimage = pytest.importorskip("cytape.scipy.ndimage")
X = np.random.default_rng(0).normal(size=(5, 6))
POINTS = np.array([[-1.3, 0.2, 1.7, 3.2, 4.3, 5.2], [2.2, -0.3, 4.7, 0.8, 6.3, 2.7]])


@sampled(6, mode=MODES, n=[1, 2, 3, 6, 50], order=[2, 3, 4, 5])
def test_filters(mode, n, order):
    x = np.random.default_rng(n).normal(size=(n, 2))
    agree_with_scipy(lambda library, x: library.spline_filter1d(x, order, 0, mode=mode), [x])


@sampled(8, mode=MODES, order=range(6), prefilter=[True, False], cval=[0.0, 0.8])
def test_coordinates(mode, order, prefilter, cval):
    def function(library, x, points):
        return library.map_coordinates(
            x, points, order=order, mode=mode, cval=cval, prefilter=prefilter)

    agree_with_scipy(function, [X, POINTS])


def test_second_order():
    for order, mode in ((3, "constant"), (2, "mirror")):
        check_grads(lambda x, points, order=order, mode=mode: ndimage.map_coordinates(
            x, points, order=order, mode=mode), [X, POINTS[:, :3]])


def test_complex_images_and_dtypes():
    z = X + 1j * X.T.reshape(5, 6)
    agree_with_scipy(lambda library, z: library.map_coordinates(z, POINTS, cval=1 + 2j), [z])
    agree_with_scipy(lambda library, z: library.spline_filter(z, output=complex), [z])
    for x in ((9 * X).astype(int), X.astype("float32")):
        for output in (None, float, "float32"):
            expected = scipy_ndimage.map_coordinates(x, POINTS, output)
            found = ndimage.map_coordinates(cytape.constant(x), POINTS, output)
            assert found.dtype == expected.dtype
            np.testing.assert_allclose(found, expected, 1e-5, 1e-6)


def test_constants_beyond_the_boundary():
    for cval in (np.nan, np.inf):
        found = ndimage.map_coordinates(cytape.constant(X), POINTS, cval=cval)
        np.testing.assert_allclose(
            found, scipy_ndimage.map_coordinates(X, POINTS, cval=cval), 1e-12)
        found = ndimage.correlate(cytape.constant(X), np.ones((3, 3)), mode="constant", cval=cval)
        np.testing.assert_allclose(found, scipy_ndimage.correlate(
            X, np.ones((3, 3)), mode="constant", cval=cval), 1e-12)
    slope = cytape.grad(lambda c: np.sum(ndimage.map_coordinates(X, POINTS, cval=c)))(0.5)
    assert slope == 4


@each("mode", MODES)
def test_coordinates_that_are_nan(mode):
    nan = np.array([[1.2, np.nan], [np.nan, 1.0]])

    def f(x, library=ndimage):
        return library.map_coordinates(X, x, order=1, mode=mode, cval=2.0)

    np.testing.assert_array_equal(f(cytape.constant(nan)), f(nan, scipy_ndimage))
    assert np.isnan(cytape.grad(lambda x: np.sum(f(x)))(nan)).all()
    assert np.isnan(cytape.jvp(f, (nan,), (np.ones((2, 2)),))[1]).all()


def test_all_ways_agree():
    points = np.array([[0.3, 1.2, 1.6]])
    taps = np.stack([scipy_ndimage.map_coordinates(row, points) for row in np.eye(4)], -1)
    check(lambda x: np.sum(ndimage.map_coordinates(x, points)**3),
          lambda x: np.sum((taps @ x)**3), np.array([1.0, -1.0, 2.0, 0.5]))
    line = np.array([0.5, 2.0, -1.0, 3.0])
    check(lambda x: np.sum(ndimage.map_coordinates(line, x[None], order=1)**3),
          lambda x: np.sum((0.5 + 1.5 * x[0])**3 + (2 - 3 * (x[1] - 1))**3), np.array([0.3, 1.2]))


def test_each_of_a_batch_has_its_own_coordinates():
    images, points = np.stack([X, X + X**2]), np.stack([POINTS, POINTS + 0.2])
    found = cytape.vmap(ndimage.map_coordinates)(images, points)
    expected = [scipy_ndimage.map_coordinates(*pair) for pair in zip(images, points, strict=True)]
    np.testing.assert_allclose(found, expected, 1e-12, 1e-12)
    found = cytape.vmap(lambda points: ndimage.map_coordinates(X, points))(points)
    np.testing.assert_allclose(
        found, [scipy_ndimage.map_coordinates(X, one) for one in points], 1e-12, 1e-12)


@each("call", [lambda x: ndimage.map_coordinates(x, POINTS[:1]),
               lambda x: ndimage.map_coordinates(x, POINTS, order=6),
               lambda x: ndimage.map_coordinates(x, POINTS, mode="odd"),
               lambda x: ndimage.map_coordinates(x, 1j * POINTS),
               lambda x: ndimage.map_coordinates(x, [1.0, 2.0]),
               lambda x: ndimage.spline_filter(x, 1), lambda x: ndimage.spline_filter1d(x, 6),
               lambda x: ndimage.spline_filter1d(x, axis=2)])
def test_errors_are_scipys(call):
    with pytest.raises(Exception) as expected:
        call(X)
    with pytest.raises(expected.type):
        call(cytape.constant(X))
