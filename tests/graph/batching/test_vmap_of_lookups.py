"""Interpolation and searches where members have points of their own, for all members at once."""

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from cytape.graph.batching import members
from tests.cases import each

RNG = np.random.default_rng(0)
X = np.concatenate([RNG.normal(size=(4, 5)), [[-9.0, 9.0, 0.0, 1.0, 2.0]]])
POINTS = np.sort(np.concatenate([RNG.normal(size=(4, 3)), [[0.0, 1.0, 2.0]]]), 1)
VALUES, ENDS = RNG.normal(size=(5, 3)), RNG.normal(size=5)
FLAT = np.array([[0.0, 0.0, 1.0]] * 5)

INTERPOLATIONS = {
    "all": (cnp.interp, (X, POINTS, VALUES), 0),
    "values": (lambda x, fp: cnp.interp(x, POINTS[0], fp), (X, VALUES), 0),
    "points": (lambda xp: cnp.interp(X[0], xp, VALUES[0]), (POINTS,), 0),
    "shared x": (cnp.interp, (X[4], POINTS, VALUES), (None, 0, 0)),
    "ends": (lambda x, xp, end: cnp.interp(x, xp, VALUES[0], end, 2 * end), (X, POINTS, ENDS), 0),
    "one x": (cnp.interp, (ENDS, POINTS, VALUES), 0),
    "one point": (cnp.interp, (X, POINTS[:, :1], VALUES[:, :1]), 0),
    "equal points": (cnp.interp, (X, FLAT, VALUES), 0),
    "matrices": (cnp.interp, (RNG.normal(size=(5, 2, 3)), POINTS, VALUES), 0),
    "complex": (cnp.interp, (X, POINTS, VALUES + 1j * VALUES[::-1]), 0),
    "period": (lambda x, xp, fp: cnp.interp(x, xp, fp, period=1.5), (X, POINTS, VALUES), 0),
}


@pytest.fixture(autouse=True)
def no_loops(monkeypatch):
    def refuse(*_):
        raise AssertionError("members were computed in a loop")

    monkeypatch.setattr(members, "_one_by_one", refuse)


def by_members(f, args, in_axes):
    axes = in_axes if isinstance(in_axes, tuple) else (in_axes,) * len(args)
    return np.stack([
        np.asarray(f(*[a if axis is None else a[i] for a, axis in zip(args, axes, strict=True)]))
        for i in range(5)])


@each("name", list(INTERPOLATIONS))
def test_interpolations_and_their_gradients_are_those_of_each_member(name):
    f, args, in_axes = INTERPOLATIONS[name]
    mapped = cytape.vmap(f, in_axes)
    np.testing.assert_allclose(mapped(*args), by_members(f, args, in_axes), atol=1e-13)
    np.testing.assert_allclose(
        cytape.function(mapped)(*args), by_members(f, args, in_axes), atol=1e-13)
    for i in range(len(args)):
        gradient = cytape.grad(lambda *args: cnp.sum(cnp.real(f(*args)) ** 2), i)
        np.testing.assert_allclose(
            cytape.vmap(gradient, in_axes)(*args), by_members(gradient, args, in_axes), atol=1e-12)


def test_at_points_slopes_are_those_to_the_right_but_for_the_last():
    slope = cytape.vmap(cytape.grad(cnp.interp), (0, None, 0))
    x, fp = np.array([-1.0, 0.0, 1.0, 2.0, 3.0]), np.array([[0.0, 5.0, 7.0]] * 5)
    assert slope(x, np.array([0.0, 1.0, 2.0]), fp).tolist() == [0.0, 5.0, 2.0, 2.0, 0.0]


@each(ends=[{}, {"left": 7.0, "right": 8.0}], n=[1, 2, 4])
def test_values_beside_infinite_ones_and_at_nan_are_numpys(n, ends):
    points = np.sort(RNG.choice([-np.inf, 0.0, 1.0, 2.0, np.inf], (100, n)), 1)
    values = RNG.choice([-np.inf, np.inf, np.nan, 0.0, 1.0, -1e308, 1e308], (100, n))
    x = np.array([-np.inf, -1.0, 0.0, 0.5, 1.0, 1.5, 2.0, 9.0, np.inf, np.nan])
    with np.errstate(all="ignore"):
        found = cytape.vmap(lambda xp, fp: cnp.interp(x, xp, fp, **ends))(points, values)
        expected = [np.interp(x, xp, fp, **ends) for xp, fp in zip(points, values, strict=True)]
    np.testing.assert_allclose(found, expected)


def of_unknown(axes, f, *args):
    """Call a function that is traced without knowing the extents of some axes of its arguments."""
    return cytape.function(f, input_signature=[cytape.Spec.of(tuple(
        None if i in axes else n for i, n in enumerate(a.shape)), a.dtype) for a in args])(*args)


@each(axes=[(0,), (1,), (0, 1, 2)], n=[5, 0])
@each("f, args", [
    (cnp.interp, (X[:, :4].reshape(5, 2, 2), POINTS, VALUES)),
    (lambda a, v: cnp.searchsorted(a, v) * 1.0, (POINTS, X)),
])
def test_extents_that_only_a_run_knows(axes, n, f, args):
    args = [a[:n] for a in args]
    np.testing.assert_allclose(of_unknown(axes, cytape.vmap(f), *args), cytape.vmap(f)(*args))


@each("axes", [(0,), (1,), (0, 1)])
def test_gradients_where_only_a_run_knows_extents(axes, monkeypatch):
    monkeypatch.undo()  # rules of indices need the number of members
    args = X, POINTS, VALUES
    f = cytape.vmap(cytape.grad(lambda *args: cnp.sum(cnp.interp(*args)), (0, 1, 2)))
    for found, expected in zip(of_unknown(axes, f, *args), f(*args), strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-13)


@each(axes=[(0,), (1,), (2,), (1, 2), (0, 1), (0, 1, 2)], n=[3, 0])
def test_all_elements_of_each_member_are_joined_where_only_a_run_knows_how_many(axes, n):
    x = np.arange(n * 4.0).reshape(n, 2, 2)
    f = cytape.vmap(lambda y: cnp.concatenate([y, 2 * y], axis=None))
    np.testing.assert_array_equal(of_unknown(axes, f, x), f(x))


@each(dtype=[float, int], side=["left", "right"])
def test_places_among_points_of_each_members_own(dtype, side):
    points = np.sort(RNG.integers(-3, 3, size=(5, 4)), 1).astype(dtype)
    x = RNG.integers(-4, 4, size=(5, 2, 3)).astype(dtype)
    if dtype is float:
        points[0, -1] = x[0, 0, 0] = np.nan
        x[0, 0, 1], points[1, 0] = np.inf, -np.inf

    def f(a, v):
        return cnp.searchsorted(a, v, side)

    for args, in_axes in (
            ((points, x), 0), ((points, x[0]), (0, None)), ((points[1], x), (None, 0))):
        found = cytape.vmap(f, in_axes)(*args)
        np.testing.assert_array_equal(found, by_members(f, args, in_axes))
        assert found.dtype == np.intp
