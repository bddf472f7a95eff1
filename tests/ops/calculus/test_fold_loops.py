"""Slices accumulated by NumPy's loops, to the bit what NumPy makes of each slice."""

import warnings

import numpy as np

from cytape.ops.calculus.fold_loops import fold_slices
from tests.cases import each

STARTS = np.array([0, 1, 5, 6, 30])
UFUNCS = ["subtract", "divide", "logaddexp", "hypot", "maximum", "fmin", "power", "arctan2"]


def by_numpy(ufunc, x, starts):
    return np.concatenate([ufunc.accumulate(part, -1) for part in np.split(x, starts[1:], -1)], -1)


@each(name=UFUNCS, dtype=["float32", "float64", "longdouble"], shape=[(40,), (3, 40)])
def test_slices(name, dtype, shape):
    x = np.random.default_rng(0).uniform(0.6, 1.6, shape).astype(dtype)
    for each_x in (x, np.asfortranarray(x)[..., ::-1]):
        found = fold_slices(getattr(np, name), each_x, STARTS)
        np.testing.assert_array_equal(
            found, by_numpy(getattr(np, name), each_x, STARTS), strict=True)


def test_nothing_is_accumulated():
    assert fold_slices(np.subtract, np.zeros((0, 4)), np.array([0, 2])).shape == (0, 4)


@each("ufunc, x", [
    (np.divide, [1.0, 0.0, 2.0]), (np.multiply, [1e300, 1e300, 2.0]),
    (np.greater, [1.0, 2.0]), (np.add, np.array([1.0, 2.0], ">f8"))],
    ids=["division by zero", "overflow", "other dtype", "byte order"])
def test_folds_left_to_numpy(ufunc, x):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert fold_slices(ufunc, np.asarray(x), np.array([0])) is None
