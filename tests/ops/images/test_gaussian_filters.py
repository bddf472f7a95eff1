"""Filters of images with fixed weights: values, gradients, standard deviations."""

import numpy as np
import pytest

import cytape
from cytape.errors import SymbolicTensorError
from cytape.testing import check_grads
from tests.cases import each

scipy_ndimage = pytest.importorskip("scipy.ndimage")
ndimage = pytest.importorskip("cytape.scipy.ndimage")
X = np.random.default_rng(0).normal(size=(7, 6))


@each("function", [
    lambda library, x: library.gaussian_filter(x, 1.3),
    lambda library, x: library.gaussian_filter(x, (1.3, 0), order=(1, 0), mode="wrap"),
    lambda library, x: library.gaussian_filter(
        x, 1.1, order=3, mode=("constant", "mirror"), cval=0.5),
    lambda library, x: library.gaussian_filter(x, 1.1, radius=2, axes=0),
    lambda library, x: library.gaussian_filter(x, 0),
    lambda library, x: library.gaussian_filter1d(x, 0.8, 0, 2),
    lambda library, x: library.sobel(x),
    lambda library, x: library.sobel(x, 0, mode="constant", cval=1.0),
    lambda library, x: library.prewitt(x, mode=("wrap", "nearest")),
    lambda library, x: library.laplace(x, mode="mirror"),
    lambda library, x: library.laplace(x, axes=1),
    lambda library, x: library.gaussian_laplace(x, 1.2),
    lambda library, x: library.gaussian_laplace(x, (1.2,), axes=(1,), mode="wrap"),
    lambda library, x: library.gaussian_gradient_magnitude(x, (1.0, 0.7)),
    lambda library, x: library.gaussian_gradient_magnitude(x, 0.7, axes=0, truncate=3.0)])
def test_values_dtypes_and_gradients(function):
    for x, tolerance in ((X, 1e-11), (X.astype("float32"), 1e-5), ((9 * X).astype(int), 0)):
        expected = function(scipy_ndimage, x)
        found = function(ndimage, cytape.constant(x))
        assert found.dtype == expected.dtype
        np.testing.assert_allclose(found, expected, tolerance, tolerance)
    check_grads(lambda x: function(ndimage, x), [X], order=1)


@each("order", [0, 1, 2, 3])
def test_standard_deviations_have_gradients(order):
    check_grads(lambda x, sigma: ndimage.gaussian_filter(x, sigma, order=order, radius=2),
                [X[:3, :3], np.array(1.2)])


def test_standard_deviations_of_each_axis():
    check_grads(lambda sigma: ndimage.gaussian_laplace(X, sigma, truncate=3),
                [np.array([1.2, 0.9])], order=1)


def test_the_magnitude_of_no_gradient_has_the_derivative_0():
    slopes = cytape.grad(lambda x: np.sum(ndimage.gaussian_gradient_magnitude(x, 1.0)))
    assert not slopes(np.ones((3, 3))).any()
    assert not cytape.grad(lambda x: np.sum(ndimage.gaussian_gradient_magnitude(x, 1.0)).real)(
        np.full((3, 3), 1 + 1j)).any()


@each("dtype", ["uint8", "complex128"])
def test_the_magnitude_of_other_dtypes_is_scipys(dtype):
    x = (50 * np.abs(X) + (1j * X if dtype == "complex128" else 0)).astype(dtype)
    found = ndimage.gaussian_gradient_magnitude(cytape.constant(x), 1.0)
    np.testing.assert_allclose(found, scipy_ndimage.gaussian_gradient_magnitude(x, 1.0), 1e-12)


def test_radii_of_symbolic_deviations():
    filtered = cytape.function(lambda sigma: ndimage.gaussian_filter(X, sigma, radius=2))
    np.testing.assert_allclose(
        filtered(cytape.constant(1.2)), scipy_ndimage.gaussian_filter(X, 1.2, radius=2))
    with pytest.raises(SymbolicTensorError, match="give radius"):
        cytape.function(lambda sigma: ndimage.gaussian_filter(X, sigma))(cytape.constant(1.2))


@each("call", [lambda x: ndimage.gaussian_filter(x, 1.0, order=-1),
               lambda x: ndimage.gaussian_filter(x, 1.0, radius=-1),
               lambda x: ndimage.gaussian_filter(x, (1.0, 1.0, 1.0)),
               lambda x: ndimage.sobel(x, 3), lambda x: ndimage.laplace(x, mode="odd")])
def test_errors_are_scipys(call):
    with pytest.raises(Exception) as expected:
        call(X)
    with pytest.raises(expected.type):
        call(cytape.constant(X))
