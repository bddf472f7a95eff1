"""Splines on grids: SciPy's values, derivatives in values, grids and points, all ways."""

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from tests import ways
from tests.cases import each

scipys = pytest.importorskip("scipy.interpolate")
ours = pytest.importorskip("cytape.scipy.interpolate")

RNG = np.random.default_rng(0)
AXES = [np.array([0.0, 0.7, 1.1, 2.0, 2.4, 3.3]), np.array([3.0, 2.2, 1.5, 0.4, 0.3, -0.5, -1.0])]
VALUES = RNG.normal(size=(6, 7, 2))
POINTS = np.array([[0.3, 2.5], [1.9, 0.35], [3.2, -0.9], [1.3, 1.4]])
FREE = {"bounds_error": False, "fill_value": None}
METHODS = ["slinear", "cubic", "quintic", "pchip", "cubic_legacy"]


@each("method", METHODS)
def test_values(method):
    exact = method if method in ("slinear", "pchip") else method.removesuffix("_legacy") + "_legacy"
    for options, points in (({}, POINTS), (FREE, POINTS * 1.5), ({"bounds_error": False},
                                                                 POINTS * 1.5)):
        expected = scipys.RegularGridInterpolator(AXES, VALUES, exact, **options)(points)
        for found in (
                ours.RegularGridInterpolator(
                    AXES, cytape.constant(VALUES), method, **options)(points),
                ours.RegularGridInterpolator(AXES, VALUES, method, **options)(
                    cytape.constant(points))):
            np.testing.assert_allclose(found, expected, 1e-11, 1e-11)


@each("method", METHODS)
def test_derivatives(method):
    """In values, grid and points, against differences of the splines of tensors."""
    arrays = [*AXES, VALUES[..., 0], POINTS]

    def f(x, y, values, points):
        return cnp.sum(ours.RegularGridInterpolator((x, y), values, method, **FREE)(points)**2)

    moves = [0.1 * RNG.normal(size=x.shape) for x in arrays]

    def at(step):
        return f(*[cytape.constant(x + step * move)
                   for x, move in zip(arrays, moves, strict=True)]).item()

    h = 1e-4
    expected = (8 * (at(h) - at(-h)) - (at(2 * h) - at(-2 * h))) / (12 * h)
    slopes = cytape.grad(f, argnums=(0, 1, 2, 3))(*arrays)
    found = sum(np.sum(slope * move) for slope, move in zip(slopes, moves, strict=True))
    np.testing.assert_allclose(found, expected, 1e-7)
    np.testing.assert_allclose(cytape.jvp(f, tuple(arrays), tuple(moves))[1], expected, 1e-7)


def test_all_ways_agree():
    rows = np.stack([
        scipys.RegularGridInterpolator(AXES, row.reshape(6, 7), "cubic_legacy")(POINTS)
        for row in np.eye(42)], -1)
    ways.check(
        lambda v: cnp.sum(ours.RegularGridInterpolator(
            AXES, cnp.reshape(v, (6, 7)), "cubic")(POINTS)**3),
        lambda v: cnp.sum((rows @ v)**3), VALUES[..., 0].ravel())
    ways.check(
        lambda p: cnp.sum(ours.interpn(AXES[:1], AXES[0]**3, p[:, None], "cubic")),
        lambda p: cnp.sum(p**3), POINTS[:, 0])


def test_derivatives_of_the_spline_and_errors():
    spline = ours.RegularGridInterpolator((AXES[0],), cytape.constant(AXES[0]**3), "cubic")
    np.testing.assert_allclose(spline([[1.5]], nu=[1]), [6.75], 1e-12)
    np.testing.assert_allclose(spline([[1.5]], nu=[4]), [0.0])
    for call in (lambda m, v: m.RegularGridInterpolator(AXES, v, "cubik"),
                 lambda m, v: m.RegularGridInterpolator(AXES, v)(POINTS, "cubik"),
                 lambda m, v: m.RegularGridInterpolator((AXES[0][:3], AXES[1]), v[:3], "cubic"),
                 lambda m, v: m.RegularGridInterpolator(AXES, v * 1j, "pchip")):
        with pytest.raises(ValueError) as theirs:
            call(scipys, VALUES)
        with pytest.raises(ValueError) as found:
            call(ours, cytape.constant(VALUES))
        assert str(found.value) == str(theirs.value)
    with pytest.raises(ValueError, match="Can only compute derivatives"):
        ours.RegularGridInterpolator(AXES, cytape.constant(VALUES))(POINTS, nu=[1, 0])


@each("method, nu", [("slinear", 1), ("slinear", 2), ("cubic", 3), ("quintic", 6)])
def test_derivatives_at_nan(method, nu):
    points = np.array([[0.3, 2.5], [np.nan, 0.35], [3.2, np.nan]])
    theirs, found = [
        m.RegularGridInterpolator(AXES, v, method, **FREE)(points, nu=[nu, 0])
        for m, v in ((scipys, VALUES), (ours, cytape.constant(VALUES)))]
    np.testing.assert_array_equal(np.isnan(found), np.isnan(theirs))


@each("method", ["linear", "nearest", *METHODS])
def test_dtypes(method):
    values = VALUES.astype("float32")
    theirs, found = [
        m.RegularGridInterpolator(AXES, v, method)(POINTS)
        for m, v in ((scipys, values), (ours, cytape.constant(values)))]
    assert found.dtype == theirs.dtype
