"""Cubic interpolation in triangles: SciPy's values, derivatives in values and points of calls."""

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from cytape.testing import check_grads
from tests import ways
from tests.cases import each

scipys = pytest.importorskip("scipy.interpolate")
ours = pytest.importorskip("cytape.scipy.interpolate")

RNG = np.random.default_rng(0)
POINTS = RNG.uniform(0, 1, (14, 2)) * [1, 4]
VALUES = RNG.normal(size=(14, 2, 2))
AT = np.array([[[0.4, 1.5], [0.5, 2.4], [0.61, 1.1]], [[0.33, 2.2], [0.7, 2.0], [3.0, 0.0]]])
EXACT = {"tol": 1e-14, "maxiter": 1000}


@each("options", [{}, {"rescale": True}, {"fill_value": 0.5}])
def test_values_are_scipys(options):
    for values in (VALUES, VALUES + 1j * VALUES[::-1], VALUES[:, 0, 0]):
        expected = scipys.CloughTocher2DInterpolator(POINTS, values, **options, **EXACT)(AT)
        for found in (
                ours.CloughTocher2DInterpolator(POINTS, cytape.constant(values), **options)(AT),
                ours.CloughTocher2DInterpolator(
                    POINTS, values, **options, **EXACT)(cytape.constant(AT)),
                ours.CloughTocher2DInterpolator(POINTS, cytape.constant(values), **options)(
                    (AT[..., 0], AT[..., 1])),
                ours.griddata(POINTS, cytape.constant(values), AT, "cubic", **options)):
            assert found.dtype == expected.dtype
            np.testing.assert_allclose(found, expected, 1e-11, 1e-11)


def test_a_point_twice():
    points, values = np.concatenate([POINTS, POINTS[:1]]), np.append(VALUES[:, 0, 0], 7.0)
    np.testing.assert_allclose(
        ours.CloughTocher2DInterpolator(points, cytape.constant(values))(AT),
        scipys.CloughTocher2DInterpolator(points, values, **EXACT)(AT), 1e-11)


def test_derivatives():
    inside = AT.reshape(-1, 2)[:5]
    check_grads(lambda values, at: ours.CloughTocher2DInterpolator(
        POINTS, cytape.convert_to_tensor(values), rescale=True)(at), [VALUES[:, 0], inside],
        order=1, step=1e-5)  # second derivatives jump at sides
    check_grads(lambda at: cytape.grad(lambda at: cnp.sum(
        ours.CloughTocher2DInterpolator(POINTS, cytape.constant(VALUES[:, 0]))(at)))(at), [inside],
        order=1, step=1e-5)
    slopes = cytape.grad(lambda at: cnp.sum(ours.CloughTocher2DInterpolator(
        POINTS, POINTS @ [2.0, 3.0], fill_value=0.0)(at)))(AT)
    np.testing.assert_allclose(slopes.reshape(-1, 2)[:5], np.full((5, 2), [2.0, 3.0]), 1e-5)
    assert not slopes[-1, -1].any()


def test_all_ways_agree():
    f = ours.CloughTocher2DInterpolator
    rows = np.asarray(f(POINTS, np.eye(14), **EXACT)(AT[0]))
    ways.check(
        lambda values: cnp.sum(f(POINTS, values)(AT[0]) ** 2),
        lambda values: cnp.sum((rows[:, :values.shape[0]] @ values) ** 2), VALUES[:, 0, 0],
        ways=ways.OF_KNOWN_EXTENTS, modes=["value", "reverse", "forward_over_reverse"])


def test_arrays_are_left_to_scipy_and_points_have_no_derivative():
    np.testing.assert_array_equal(
        ours.CloughTocher2DInterpolator(POINTS, VALUES)(AT),
        scipys.CloughTocher2DInterpolator(POINTS, VALUES)(AT))
    with pytest.raises(TypeError, match="LinearNDInterpolator"):
        ours.CloughTocher2DInterpolator(cytape.constant(POINTS), VALUES)
