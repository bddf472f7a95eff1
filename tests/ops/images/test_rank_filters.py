"""Filters that choose an element of each window: values, dtypes, gradients, ties, errors."""

import numpy as np
import pytest

import cytape
from tests.cases import each, sampled
from tests.ways import check

scipy_ndimage = pytest.importorskip("scipy.ndimage")
ndimage = pytest.importorskip("cytape.scipy.ndimage")
from tests.ops.images.test_correlations import MODES, agree_with_scipy  # noqa: E402

X = np.random.default_rng(0).permutation(42).reshape(7, 6) / 10
CROSS = np.array([[0, 1, 0], [1, 1, 1]])
FILTERS = {
    "minimum_filter": lambda m, x, **o: m.minimum_filter(x, (3, 2), **o),
    "maximum_filter": lambda m, x, **o: m.maximum_filter(x, footprint=CROSS, origin=(-1, 1), **o),
    "minimum_filter of axes": lambda m, x, **o: m.minimum_filter(x, (3, 2), axes=(1, 0), **o),
    "maximum_filter of an axis": lambda m, x, **o: m.maximum_filter(x, 7, axes=1, origin=2, **o),
    "minimum_filter1d": lambda m, x, **o: m.minimum_filter1d(x, 4, 0, origin=1, **o),
    "median_filter": lambda m, x, **o: m.median_filter(x, 3, **o),
    "median_filter of an axis": lambda m, x, **o: m.median_filter(x, 4, axes=0, **o),
    "rank_filter": lambda m, x, **o: m.rank_filter(x, -2, footprint=CROSS, **o),
    "percentile_filter": lambda m, x, **o: m.percentile_filter(x, -30, (2, 4), **o),
    "percentile 100": lambda m, x, **o: m.percentile_filter(x, 100, 2, **o)}


@sampled(8, mode=MODES, name=FILTERS)
def test_values_and_gradients(mode, name):
    agree_with_scipy(lambda m, x: FILTERS[name](m, x, mode=mode, cval=2.05), [X], 1)


@each("name", FILTERS)
def test_dtypes_and_ties(name):
    for x in ((X * 3).astype(int), X.astype("float32")):
        for output in (None, "float32"):
            expected = FILTERS[name](scipy_ndimage, x, output=output)
            found = FILTERS[name](ndimage, cytape.constant(x), output=output)
            assert found.dtype == expected.dtype
            np.testing.assert_array_equal(found, expected)


@each("name", FILTERS)
def test_empty_images_and_nan(name):
    holed = X.copy()
    holed[[1, 3, 4], [2, 0, 5]] = np.nan
    for x in (holed, np.zeros((0, 3)), np.zeros((3, 0), "float32")):
        expected = FILTERS[name](scipy_ndimage, x)
        found = FILTERS[name](ndimage, cytape.constant(x))
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)


def test_the_value_beyond_the_boundary_has_a_gradient():
    def total(cval):
        return np.sum(ndimage.maximum_filter(X[:3, :3], 3, mode="constant", cval=cval))

    assert cytape.grad(total)(100.0) == 8
    assert cytape.grad(total)(-np.inf) == 0


def test_the_first_of_equal_elements_has_the_gradient():
    for function in (ndimage.maximum_filter1d, ndimage.minimum_filter1d):
        slopes = cytape.grad(lambda x, f=function: f(x, 3)[1])(np.ones(3))
        np.testing.assert_array_equal(slopes, [1, 0, 0])
    slopes = cytape.grad(lambda x: ndimage.median_filter(x, 5)[2])(np.ones(5))
    np.testing.assert_array_equal(slopes, [1, 0, 0, 0, 0])


def test_all_ways_agree():
    x = np.array([3.0, 1.0, 2.0, 5.0])
    check(lambda x: np.sum(ndimage.maximum_filter(x, 3)**3),
          lambda x: 2 * x[0]**3 + 2 * x[3]**3, x)
    check(lambda x: np.sum(ndimage.median_filter(x, 3)**3),
          lambda x: x[0]**3 + 2 * x[2]**3 + x[3]**3, x)


def test_errors():
    t = cytape.constant(X)
    for call in (lambda m, x: m.minimum_filter(x), lambda m, x: m.rank_filter(x, 9, 3),
                 lambda m, x: m.median_filter(x, 3, origin=2),
                 lambda m, x: m.minimum_filter1d(x, 0), lambda m, x: m.maximum_filter(x * 1j, 3),
                 lambda m, x: m.percentile_filter(x, 101, 3),
                 lambda m, x: m.median_filter(x, footprint=[1, 1])):
        with pytest.raises((RuntimeError, TypeError, ValueError)) as theirs:
            call(scipy_ndimage, X)
        with pytest.raises(theirs.type) as ours:
            call(ndimage, t)
        assert str(ours.value) == str(theirs.value)
