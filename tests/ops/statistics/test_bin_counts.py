"""Counts in bins: edges, elements outside of all bins, errors."""

import warnings

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from cytape.errors import DetachedError, SymbolicTensorError
from cytape.testing import check_grads
from tests.cases import each

X = np.array([0.0, 0.2, 1.0, 2.0, 2.0, 5.0])


def test_weights_of_no_elements_are_floats_in_functions_as_well():
    count = cytape.function(np.bincount)
    found = count(np.array([], int), np.array([]))
    assert found.shape == (0,) and found.dtype == np.float64
    gradient = cytape.grad(lambda w: np.sum(count(np.array([], int), w)))
    assert gradient(np.array([])).shape == (0,)


@each(bins=[3, [0.0, 1.0, 2.0], [0.5, 5.0], "sturges", [0.0, 0.0, 2.0]], density=[None, True])
def test_elements_are_counted_as_numpy_counts(bins, density):
    with np.errstate(invalid="ignore"):
        found = np.histogram(cytape.constant(X), bins, density=density)
        expected = np.histogram(X, bins, density=density)
    for ours, theirs in zip(found, expected, strict=True):
        assert ours.dtype == theirs.dtype
        np.testing.assert_allclose(ours, theirs)


def test_edges_move_with_the_range_of_the_elements():
    gradient = cytape.grad(lambda x: np.histogram(x, 4)[1][1])(X)
    np.testing.assert_array_equal(gradient, [0.75, 0, 0, 0, 0, 0.25])
    with pytest.raises(DetachedError):
        cytape.grad(lambda x: np.histogram(x, "sturges")[1][1])(X)


def test_densities_move_with_the_edges():
    edges = np.array([0.0, 1.0, 4.0])
    gradient = cytape.grad(lambda edges: np.histogram(X, edges, density=True)[0][0])(edges)
    np.testing.assert_allclose(gradient, [0.4, -0.4, 0])


def test_whole_numbers_are_counted():
    x = np.array([0, 3, 1, 3])
    np.testing.assert_array_equal(np.bincount(cytape.constant(x)), np.bincount(x))
    f = cytape.function(lambda x, w: np.bincount(x, w, minlength=6))
    np.testing.assert_array_equal(f(x, np.ones(4)), np.bincount(x, np.ones(4), 6))


def test_constant_places_tell_a_graph_how_many_bins_there_are():
    shapes = []

    @cytape.function
    def count(weights, places):
        shapes.extend([np.bincount([0, 1, 1], weights).shape,
                       np.bincount([0, 1, 1], weights, minlength=4).shape,
                       np.bincount(places, weights).shape])
        return np.bincount([0, 1, 1], weights)

    np.testing.assert_array_equal(count(np.ones(3), np.array([0, 1, 1])), [1, 2])
    assert shapes == [(2,), (4,), (None,)]


def test_points_outside_of_all_cells():
    x, w = np.array([0.5, 1.5, 9.0]), np.array([1.0, 2.0, 4.0])
    edges = [[0.0, 1.0, 2.0], [0.0, 2.0]]
    found = np.histogram2d(x, x, edges, weights=cytape.constant(w))
    for ours, theirs in zip(found, np.histogram2d(x, x, edges, weights=w), strict=True):
        np.testing.assert_array_equal(ours, theirs)


POINTS = np.array([[0.5, 0.5], [1.5, 1.75], [2.5, 0.5], [1.0, 9.0]])


@each("arguments", [
    {"bins": 3}, {"bins": [2, 3], "density": True}, {"bins": [[0.0, 1.5, 2.0], 2]},
    {"bins": 2, "range": [None, (0, 2)]}, {"bins": [0.0, 1.0, 4.0, 9.0]},
    {"bins": np.array([2, 3])}, {"weights": np.arange(4)}])
@each(dtype=["float64", "float32", "int64", "bool"], traced=[False, True])
def test_points_are_counted_as_numpy_counts(arguments, dtype, traced):
    x, y = POINTS.T.astype(dtype)

    def count(x, y):
        return np.histogram2d(x, y, **arguments)

    found = (cytape.function(count) if traced else count)(cytape.constant(x), cytape.constant(y))
    for ours, theirs in zip(found, count(x, y), strict=True):
        assert ours.dtype == theirs.dtype
        np.testing.assert_allclose(ours, theirs, rtol=1e-6)


def test_edges_of_recorded_points_move_and_counts_do_not():
    factors = np.arange(4.0).reshape(2, 2)

    def weighted(x):
        counts, edges, _ = np.histogram2d(x, POINTS[:, 1], 2, weights=x)
        return np.sum(counts * factors) + edges[1]

    gradient = cytape.grad(weighted)(POINTS[:, 0])
    np.testing.assert_array_equal(gradient, [0.5, 2, 2.5, 1])
    _, of_edges = cytape.vjp(lambda points: np.histogramdd(points, [1, 2])[1][1], POINTS)
    np.testing.assert_array_equal(
        of_edges(np.array([0.0, 1.0, 0.0]))[0], [[0, 0.25], [0, 0], [0, 0.25], [0, 0.5]])
    with pytest.warns(cytape.errors.UnconnectedGradientWarning):
        cytape.grad(lambda points: np.histogramdd(points, 2)[0][0, 0])(POINTS)


@each("bins", [lambda edges: [edges, 1], lambda edges: [edges, edges], lambda edges: edges])
def test_densities_of_points_move_with_the_edges(bins):
    check_grads(lambda edges: np.histogram2d(*POINTS.T, bins(edges), density=True)[0],
                [np.array([0.0, 1.2, 4.0])])


def test_points_of_which_a_graph_does_not_know_how_many():
    x, y = POINTS.T
    of_points = cytape.Spec.of((None,), float)
    traced = cytape.function(
        lambda x, y: np.histogram2d(x, y, 2, weights=y), input_signature=[of_points] * 2)
    for ours, theirs in zip(traced(x, y), np.histogram2d(x, y, 2, weights=y), strict=True):
        np.testing.assert_allclose(ours, theirs)
    traced = cytape.function(
        lambda points: np.histogramdd(points, 2),
        input_signature=[cytape.Spec.of((None, None), float)])
    with pytest.raises(SymbolicTensorError, match="coordinates"):
        traced(POINTS)


@each("arguments", [{"range": (0, 2)}, {}])
def test_edges_have_the_dtype_of_the_elements(arguments):
    for dtype in ("float32", "float64", "int64", "bool"):
        x = X.astype(dtype)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # of bool, which counts as uint8
            found = np.histogram(cytape.constant(x), 3, **arguments)
            expected = np.histogram(x, 3, **arguments)
        assert found[1].dtype == expected[1].dtype
        np.testing.assert_allclose(found[0], expected[0])


@each("shape", [(None,), (2, None)])
def test_bins_of_elements_of_which_a_graph_does_not_know_how_many(shape):
    traced = cytape.function(
        lambda x: np.histogram(x, 3), input_signature=[cytape.Spec.of(shape, float)])
    x = X if len(shape) == 1 else X.reshape(2, 3)
    for ours, theirs in zip(traced(x), np.histogram(x, 3), strict=True):
        np.testing.assert_allclose(ours, theirs)


@each(traced=[False, True], x=[np.full(3, 0.3), np.array([2.0]), np.array([1.0, 2.0, 4.0])])
def test_edges_around_one_value(x, traced):
    def f(x):
        return np.histogram(x, 3, weights=x)

    counts, edges = (cytape.function(f) if traced else f)(cytape.constant(x))
    expected = np.histogram(x, 3, weights=x)
    np.testing.assert_allclose(counts, expected[0])
    np.testing.assert_allclose(edges, expected[1])
    factors = np.array([1.0, 2.0, 3.0])
    gradient = cytape.grad((cytape.function if traced else lambda f: f)(
        lambda x: np.sum(f(x)[0] * factors)))(x)
    np.testing.assert_array_equal(gradient, factors[np.digitize(x, expected[1][1:-1])])


def test_counts_of_bins_in_tensors():
    x, y = np.array([0.1, 0.5, 0.7, 0.2]), np.array([0.3, 0.9, 0.4, 0.8])
    for bins in ([2, 3], 2, [0.0, 0.5, 1.0]):
        found = cnp.histogram2d(x, y, cytape.constant(bins))
        for part, expected in zip(found, np.histogram2d(x, y, bins), strict=True):
            np.testing.assert_allclose(part, expected)
    for part, expected in zip(
            cnp.histogram(x, cytape.constant(3)), np.histogram(x, 3), strict=True):
        np.testing.assert_allclose(part, expected)


@each("tensor", ["elements", "weights"])
def test_rules_for_bins_take_no_weights(tensor):
    x, weights = np.array([0.1, 0.5, 0.7]), np.ones(3)
    if tensor == "elements":
        x = cytape.constant(x)
    else:
        weights = cytape.constant(weights)
    with pytest.raises(TypeError, match="not supported for weighted data"):
        cnp.histogram(x, "auto", weights=weights)
