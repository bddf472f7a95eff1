"""Sums and moments of images by labels: values, gradients, ways."""

import numpy as np
import pytest

import cytape
from cytape.testing import check_grads
from tests.cases import each
from tests.ways import WAYS, check

scipy_ndimage = pytest.importorskip("scipy.ndimage")
ndimage = pytest.importorskip("cytape.scipy.ndimage")

X = np.random.default_rng(0).uniform(0.5, 1, (4, 5))
LABELS = np.arange(20).reshape(4, 5) % 4


@each("name", ["sum_labels", "mean", "variance", "standard_deviation", "center_of_mass"])
def test_values_and_gradients(name):
    for args in ((), (LABELS,), (LABELS, 2), (LABELS, [3, 0, 3]), (LABELS - 2.5, [-0.5, 0.5]),
                 (LABELS[0], [[1, 2], [3, 0]])):
        if name == "center_of_mass" and args and args[0].ndim == 1:
            continue  # SciPy takes a list of labels only
        expected = np.asarray(getattr(scipy_ndimage, name)(X, *args))
        found = getattr(ndimage, name)(cytape.constant(X), *args)
        np.testing.assert_allclose(found, expected, 1e-12)
        assert isinstance(found, tuple) == (
            name == "center_of_mass" and np.ndim(args[-1] if len(args) > 1 else 0) == 0)
        check_grads(lambda x, args=args: getattr(ndimage, name)(cytape.convert_to_tensor(x), *args),
                    [X], order=2)
    assert np.sum(ndimage.sum_labels(cytape.constant(X), LABELS, [7, 9])) == 0


def test_variances_of_complex_images():
    x = X + 1j * X[::-1]
    for args in ((), (LABELS,), (LABELS, 2)):
        np.testing.assert_allclose(ndimage.variance(cytape.constant(x), *args),
                                   scipy_ndimage.variance(x, *args), 1e-12)
    check_grads(lambda x: ndimage.standard_deviation(x, LABELS, 2).real, [x])


def test_all_ways_agree():
    labels = np.array([1, 2, 1, 3])
    known = [way for way in WAYS if way != "unknown extents"]
    check(lambda x: np.sum(ndimage.mean(x, labels, [1, 3])**3),
          lambda x: (0.5 * (x[0] + x[2]))**3 + x[3]**3, np.array([1.0, 2.0, 3.0, 4.0]), ways=known)


@each(name=["sum_labels", "mean", "variance", "center_of_mass"], shape=[(1, 3), (2, 1)])
def test_images_are_broadcast_to_labels(name, shape):
    image, labels = np.arange(1.0, np.prod(shape) + 1).reshape(shape), [[1, 2, 1], [2, 2, 1]]
    with np.errstate(invalid="ignore"):  # SciPy divides by the number of elements without a label
        expected = getattr(scipy_ndimage, name)(image, labels, [1, 2])
    np.testing.assert_allclose(
        getattr(ndimage, name)(cytape.constant(image), labels, [1, 2]), expected)
    assert cytape.grad(lambda x: np.sum(
        getattr(ndimage, name)(x, labels, [1, 2])))(image).shape == shape
