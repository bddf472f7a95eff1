"""Erosion, dilation and what consists of them: values, gradients in images and structures."""

import numpy as np
import pytest

import cytape
from tests.cases import each
from tests.ways import check

scipy_ndimage = pytest.importorskip("scipy.ndimage")
ndimage = pytest.importorskip("cytape.scipy.ndimage")
from tests.ops.images.test_correlations import agree_with_scipy  # noqa: E402

X = np.random.default_rng(0).permutation(30).reshape(5, 6) / 10
STRUCTURE = np.array([[0.0, 0.13, 0.31], [0.57, -0.29, 0.83]])
CROSS = np.array([[0, 1, 0], [1, 1, 1]])


@each("name", [
    "grey_erosion", "grey_dilation", "grey_opening", "grey_closing", "morphological_gradient",
    "morphological_laplace", "white_tophat", "black_tophat"])
def test_values_and_gradients(name):
    def call(m, *args, **options):
        return getattr(m, name)(*args, **options)

    agree_with_scipy(lambda m, x: call(m, x, (2, 3), mode="wrap"), [X], 1)
    agree_with_scipy(lambda m, x: call(m, x, footprint=CROSS, origin=(-1, 1)), [X], 1)
    agree_with_scipy(lambda m, x: call(m, x, 2, axes=1), [X], 1)
    agree_with_scipy(lambda m, x, s: call(
        m, x, structure=s, footprint=CROSS, mode="constant", cval=0.05), [X, STRUCTURE], 1)
    agree_with_scipy(lambda m, x, s: call(m, x, structure=s, axes=(0,)), [X, STRUCTURE[0]], 1)


def test_all_ways_agree():
    x = np.array([3.0, 1.0, 2.0, 5.0])
    check(lambda x: np.sum(ndimage.grey_dilation(x, structure=np.array([0.5, 0, 0.5]))**3),
          lambda x: 2 * (x[0] + 0.5)**3 + 2 * (x[3] + 0.5)**3, x)


@each("name", ["grey_erosion", "grey_dilation"])
def test_structures_of_constant_images(name):
    def f(structure):
        return np.sum(getattr(ndimage, name)(X, structure=structure)**2)

    structure = cytape.constant(STRUCTURE)
    np.testing.assert_allclose(
        cytape.function(cytape.grad(f))(structure), cytape.grad(f)(structure), rtol=1e-12)


def test_errors():
    for call in (lambda m, x: m.grey_erosion(x), lambda m, x: m.grey_dilation(x),
                 lambda m, x: m.grey_erosion(x, structure=np.ones(2))):
        with pytest.raises((RuntimeError, ValueError)) as theirs:
            call(scipy_ndimage, X)
        with pytest.raises(theirs.type) as ours:
            call(ndimage, cytape.constant(X))
        assert str(ours.value) == str(theirs.value)


@each("name", ["morphological_gradient", "morphological_laplace", "grey_opening"])
def test_dtypes_of_results(name):
    for x in (X, (3 * X).astype(int)):
        expected = getattr(scipy_ndimage, name)(x, size=3, output=int)
        found = getattr(ndimage, name)(cytape.constant(x), size=3, output=int)
        assert found.dtype == expected.dtype
        np.testing.assert_allclose(found, expected)
