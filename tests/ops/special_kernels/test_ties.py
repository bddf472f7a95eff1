"""Shares of gradients among equal elements: against their definition."""

import numpy as np

from cytape.ops.special_kernels.ties import shared_among_ties
from tests.cases import each

RNG = np.random.default_rng(0)


def by_definition(g, x, y, axis):
    chosen = x == y
    ties = np.maximum(chosen.sum(axis, keepdims=True), 1).astype(x.dtype)
    return np.where(chosen, x.dtype.type(g) / ties if np.isscalar(g) else g / ties, 0)


@each("dtype", ["float32", "float64"])
@each("shape, axis", [
    ((), None), ((5,), None), ((5,), 0), ((3, 4), None), ((3, 4), 0), ((3, 4), -1), ((2, 3, 4), 1),
    ((2, 3, 4), (0, 1)), ((2, 3, 4), (-1, 1)), ((1, 1), (0, 1)), ((0, 3), 1), ((2000,), 0),
    ((3, 1500), 1), ((1500, 3), 0)])
def test_every_shape(shape, axis, dtype):
    x = RNG.integers(0, 5, shape).astype(dtype)
    y = x.max(axis, keepdims=True)
    g = RNG.normal(size=y.shape).astype(dtype)
    wide = np.repeat(x, 2, axis=-1)[..., ::2] if shape else x
    for given in (x, np.asfortranarray(x), wide):
        found = shared_among_ties(g, given, y, axis, 0)
        assert found.dtype == dtype
        np.testing.assert_array_equal(found, by_definition(g, x, y, axis))
    found = shared_among_ties(np.broadcast_to(g.dtype.type(2), y.shape), x, y, axis, 0)
    np.testing.assert_array_equal(found, by_definition(2, x, y, axis))


@each(dtype=["float32", "float64"], axis=[None, 0, 1])
def test_shares_of_magnitudes_have_the_sign_of_the_elements(axis, dtype):
    x = RNG.integers(-3, 4, (3, 1500)).astype(dtype)
    x[:, 0] = -0.0  # a column of zeros
    y = np.abs(x).max(axis, keepdims=True)
    g = RNG.normal(size=y.shape).astype(dtype)
    expected = np.sign(x) * by_definition(g, np.abs(x), y, axis)
    np.testing.assert_array_equal(shared_among_ties(g, x, y, axis, 0, signed=True), expected)
    x[1, 1] = np.nan
    y = np.abs(x).max(axis, keepdims=True)
    with np.errstate(all="raise"):
        found = shared_among_ties(g, x, y, axis, 0, signed=True)
    np.testing.assert_array_equal(np.isnan(found), np.broadcast_to(np.isnan(y), x.shape))


@each("place", [0, 511, 512, 1023, 1024, 1999])
def test_one_extremum_wherever_it_is(place):
    x = np.zeros(2000)
    x[place] = 1
    found = shared_among_ties(np.array(3.0), x, np.array(1.0), None, 0)
    np.testing.assert_array_equal(found, 3 * x)
    x[0] = 1
    found = shared_among_ties(np.array(3.0), x, np.array(1.0), None, 0)
    np.testing.assert_array_equal(found, 3 * x / x.sum())


@each("skip_nan, nothing", [(False, np.nan), (True, 0.0)])
@each("axis", [0, 1])
def test_lines_without_an_extremum(axis, skip_nan, nothing):
    x = np.array([[1.0, np.nan], [np.nan, np.nan]])
    y = np.fmax.reduce(x, axis=axis, keepdims=True)
    expected = np.full((2, 2), nothing)
    expected[(slice(None), 0) if axis == 0 else 0] = [2, 0]
    with np.errstate(all="raise"):
        found = shared_among_ties(np.full(y.shape, 2.0), x, y, axis, skip_nan)
    np.testing.assert_array_equal(found, expected)


@each("x, g, axis", [
    (np.ones((2, 3, 4)), np.ones((1, 3, 1)), (0, 2)), (np.ones(3), np.ones((1,)), ()),
    (np.ones(3, np.float16), np.ones(1, np.float16), 0), (np.ones(3, complex), np.ones(1), 0),
    (np.ones(3, ">f8"), np.ones(1, ">f8"), 0), (np.ones(3, np.float32), np.ones(1), 0),
    (np.ones(()), np.ones(()), 0), (np.ones(3), np.ones(3), 0)])
def test_all_else_is_left_to_numpy(x, g, axis):
    assert shared_among_ties(g, x, np.ones(g.shape, x.dtype), axis, 0) is None
