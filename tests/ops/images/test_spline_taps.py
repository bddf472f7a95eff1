"""Interpolation by B-splines against SciPy in all modes, and its transpose."""

import numpy as np
import pytest

from cytape.ops.images import spline_taps
from tests.cases import each

scipy_ndimage = pytest.importorskip("scipy.ndimage")


@each(mode=spline_taps.MODES, order=range(6), shape=[(1,), (2,), (9,), (3, 4, 5)])
def test_numbers_are_scipys_and_the_transpose_is_exact(mode, order, shape):
    rng = np.random.default_rng(0)
    c, n_axes = rng.normal(size=(2, *shape)), len(shape)
    near = rng.uniform(-0.2, 1.2, (n_axes, 40)) * np.array(shape)[:, None]
    on_elements = rng.integers(-12, 20, (n_axes, 20)) + np.arange(20) % 2 / 2
    x = np.concatenate([rng.uniform(-15, 25, (n_axes, 20)), on_elements, near], 1)
    g = rng.normal(size=(2, x.shape[1]))
    expected = [scipy_ndimage.map_coordinates(one, x, order=order, mode=mode, prefilter=False)
                for one in c]
    for times in ((0,) * n_axes, (1,) * n_axes, (*[0] * (n_axes - 1), 2), (6,) * n_axes):
        y = spline_taps.interpolate(c, x[None], order, mode, times)
        if not any(times):
            np.testing.assert_allclose(y, expected, 1e-12, 1e-12)
        slopes = spline_taps.slopes(c, x[None], order, mode, times)
        for axis in range(n_axes):
            more = tuple([n + (i == axis) for i, n in enumerate(times)])
            np.testing.assert_array_equal(
                slopes[:, axis], spline_taps.interpolate(c, x[None], order, mode, more))
        spread = spline_taps.spread(g, x[None], shape, order, mode, times)
        np.testing.assert_allclose(np.sum(spread * c), np.sum(y * g), 1e-9, 1e-9)
        assert max(times) <= order or not y.any()
    own = spline_taps.interpolate(c, np.stack([x, x]), order, mode, (0,) * n_axes)
    np.testing.assert_array_equal(
        own, spline_taps.interpolate(c, x[None], order, mode, (0,) * n_axes))


@each(mode=spline_taps.MODES, order=[2, 3, 5])
def test_derivatives_are_central_differences(mode, order):
    c = np.random.default_rng(0).normal(size=(1, 7))
    x = np.array([-3.3, -1.2, -0.3, 0.2, 2.3, 5.8, 6.3, 7.2, 9.1]).reshape(1, 1, -1)
    step = 1e-5
    after, before = [spline_taps.interpolate(c, x + move, order, mode, (0,))
                     for move in (step, -step)]
    found = spline_taps.interpolate(c, x, order, mode, (1,))
    np.testing.assert_allclose(found, (after - before) / (2 * step), 1e-6, 1e-6)


@each("point", [np.nan, np.inf, -np.inf, 1e300])
def test_points_that_are_nowhere(point):
    x, is_nan = np.full((1, 1, 1), point), np.isnan(point)
    for mode in spline_taps.MODES:
        y = spline_taps.interpolate(np.ones((1, 4)), x, 3, mode, (0,))
        expected = float(mode == "nearest")
        if is_nan and mode in ("nearest", "grid-constant"):
            expected = np.nan
        np.testing.assert_allclose(y, [[expected]], 1e-14)
        has_slope = not is_nan and mode in ("constant", "grid-constant", "nearest")
        for slope in (spline_taps.interpolate(np.ones((1, 4)), x, 3, mode, (1,)),
                      spline_taps.slopes(np.ones((1, 4)), x, 3, mode, (0,))):
            np.testing.assert_array_equal(slope.ravel(), [0.0 if has_slope else np.nan])


@each("change", [
    {"coefficients": np.ones((1, 3), "f4")}, {"coefficients": np.ones(3)},
    {"coefficients": np.ones((1, 0))}, {"coordinates": np.ones((1, 2, 4))},
    {"coordinates": np.ones((2, 1, 4))}, {"order": 6}, {"derivative": (0, 0)},
    {"derivative": (-1,)}])
def test_unfit_arguments(change):
    options = {"coefficients": np.ones((1, 3)), "coordinates": np.ones((1, 1, 4)), "order": 3,
               "mode": "mirror", "derivative": (0,)}
    with pytest.raises(ValueError, match="expected float64 arrays"):
        spline_taps.interpolate(**{**options, **change})
