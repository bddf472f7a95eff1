"""Arguments that the functions of images share: folds, axes, output dtypes."""

import numpy as np
import pytest

import cytape
from cytape.errors import SymbolicTensorError
from tests.cases import each

boundaries = pytest.importorskip("cytape.ops.images.boundaries")
ndimage = pytest.importorskip("cytape.scipy.ndimage")


@each(mode=boundaries.PADDING, widths=[((2, 1),), ((0, 7),), ((5, 0),), ((0, 0),)], n=[1, 3])
def test_folds_are_transposed_extensions(mode, widths, n):
    matrix = np.stack([boundaries.extended(row, widths, mode) for row in np.eye(n)], -1)
    g = np.arange(1.0, len(matrix) + 1)
    np.testing.assert_allclose(boundaries.fold_op(g, widths=widths, mode=mode), matrix.T @ g)


def test_outputs_are_dtypes():
    x, weights = np.arange(6).reshape(2, 3), np.array([0.5, 1.0, 0.25])
    scipy_ndimage = pytest.importorskip("scipy.ndimage")
    for image in (x, x / 3, (x / 3).astype("float32")):
        for output in (None, float, "float32", int):
            expected = scipy_ndimage.correlate1d(image, weights, output=output)
            found = ndimage.correlate1d(cytape.constant(image), weights, output=output)
            assert found.dtype == expected.dtype
            np.testing.assert_allclose(found, expected, 1e-6)
    with pytest.raises(TypeError, match="output: expected a dtype"):
        ndimage.correlate1d(cytape.constant(x), weights, output=np.zeros((2, 3)))
    with pytest.raises(RuntimeError, match="complex"):
        ndimage.correlate1d(cytape.constant(x * 1j), weights, output="float64")


def test_weights_of_integer_images_have_gradients_by_a_dtype():
    slopes = cytape.grad(lambda w: np.sum(
        ndimage.correlate1d(np.arange(4), w, output=float)))(np.ones(3))
    np.testing.assert_allclose(slopes, [3, 6, 9])


@each("axes", [3, (0, 0), "x", (0.5,)])
def test_axes_are_checked_as_by_scipy(axes):
    with pytest.raises((ValueError, TypeError)):
        ndimage.gaussian_filter(cytape.constant(np.ones((2, 3))), 1.0, axes=axes)


def test_shapes_that_must_be_known():
    assert boundaries.known_shape(cytape.constant(np.ones((2, 3))), "zoom") == (2, 3)
    with cytape.Graph().as_default(), pytest.raises(SymbolicTensorError, match="zoom needs"):
        boundaries.known_shape(cytape.placeholder(float, (None, 2)), "zoom")
