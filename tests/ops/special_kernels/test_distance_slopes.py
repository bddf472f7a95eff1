"""Gradients of tables of distances against differences, at special points, and refused arrays."""

import numpy as np
import pytest

from cytape.ops.special_kernels.distance_slopes import METRICS, slopes
from tests.cases import each

scipys = pytest.importorskip("scipy.spatial.distance")

X = np.array([[0.3, 1.4, 2.6], [3.2, -0.7, 1.9]])
Y = np.array([[1.7, 0.9, 0.5], [-0.6, 2.1, 3.9], [2.2, 2.9, 0.2]])
G = np.array([[1.0, -2.0, 0.5], [0.0, 3.0, 1.0]])
W = np.array([1.0, 2.0, 0.5])


@each(metric=METRICS, weights=[None, W], p=[1.5, 3.0])
def test_gradients_are_central_differences(metric, weights, p):
    options = {} if weights is None else {"w": weights}
    options |= {"p": p} if metric == "minkowski" else {}

    def total(x, y):
        return np.sum(G * scipys.cdist(x, y, metric, **options))

    for points, found in zip((X, Y), slopes(X, Y, G, metric, weights, p), strict=True):
        for place in np.ndindex(points.shape):
            step = np.zeros(points.shape)
            step[place] = 1e-6
            after, before = [
                total(X + sign * step, Y) if points is X else total(X, Y + sign * step)
                for sign in (1, -1)]
            np.testing.assert_allclose(found[place], (after - before) / 2e-6, 1e-6, 1e-8)


@each(metric=METRICS)
def test_equal_points_and_nan(metric):
    points = np.array([[0.0, 1.0], [0.0, 1.0]])
    gx, gy = slopes(points[:1], points[1:], np.ones((1, 1)), metric)
    assert (gx == -gy).all() and (metric == "braycurtis" or (gx == 0).all())
    gx, _ = slopes(np.array([[np.nan, 1.0]]), np.ones((1, 2)), np.ones((1, 1)), metric)
    assert np.isnan(gx[0, 0])


def test_ties_share_the_gradient_and_layouts():
    gx, _ = slopes(np.array([[1.0, 5.0, -1.0]]), np.array([[0.0, 5.0, 0.0]]), np.ones((1, 1)),
                   "chebyshev")
    assert gx.tolist() == [[0.5, 0.0, -0.5]]
    wide = [np.repeat(a, 2, 1)[:, ::2] for a in (X, Y, G)]
    for one, other in zip(slopes(*wide, "canberra"), slopes(X, Y, G, "canberra"), strict=True):
        np.testing.assert_array_equal(one, other)


@each(metric=METRICS)
def test_blocks_of_columns(metric):
    rng = np.random.default_rng(0)
    x, y, g = rng.normal(size=(3, 2)), rng.normal(size=(531, 2)), rng.normal(size=(3, 531))
    g[0, :260] = g[1] = g[2, 500:] = 0
    gx, gy = slopes(x, y, g, metric)
    columns = [slopes(x, y[[j]], g[:, [j]], metric) for j in range(531)]
    np.testing.assert_allclose(gx, sum(column[0] for column in columns), 1e-10)
    np.testing.assert_allclose(gy, np.concatenate([column[1] for column in columns]), 1e-12)


@each("arrays", [(X[0], Y, G), (X, Y[:, :2], G), (X, Y, G.T), (X, Y.astype(np.float32), G),
                 (X, Y, G, "cityblock", W[:2])])
def test_arrays_that_do_not_fit(arrays):
    with pytest.raises(ValueError, match="expected float64 arrays"):
        slopes(*arrays) if len(arrays) > 3 else slopes(*arrays, "cityblock")
