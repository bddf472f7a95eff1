"""Conditions of NumPy on extents that only a run knows: they hold, or an error is raised."""

import re

import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view

import cytape
import cytape.numpy as cnp
from cytape.errors import GraphError
from cytape.ops.adjoints.extent_checks import (
    checked_extents_op,
    ensure_shape,
    with_extents,
    with_shape_of,
)
from tests.cases import each

OPEN = "function with a signature", "function that leaves shapes open", "graph", "branch", "loop"


def run(way, f, arrays):
    """Call a function of arrays whose extents are not known while it is traced."""
    shapes = [(None,) * array.ndim for array in arrays]
    signature = [cytape.Spec.of(shape, float) for shape in shapes]
    if way == "function with a signature":
        return cytape.function(f, input_signature=signature)(*arrays)
    if way == "function that leaves shapes open":
        traced = cytape.function(f, reduce_retracing=True)
        for more in (1, 2):
            try:
                with np.errstate(all="ignore"):
                    traced(*[np.ones([n + more for n in array.shape]) for array in arrays])
            except (TypeError, ValueError, RuntimeError):
                continue
        return traced(*arrays)
    if way == "branch":
        return cytape.function(
            lambda *xs: cytape.cond(cnp.size(xs[0]) >= 0, lambda: f(*xs), lambda: f(*xs)),
            input_signature=signature)(*arrays)
    if way == "loop":
        return cytape.function(
            lambda *xs: cytape.map_fn(lambda _: f(*xs), np.zeros(1)),
            input_signature=signature)(*arrays)
    with cytape.Graph().as_default() as graph:
        places = [cytape.placeholder("float64", shape) for shape in shapes]
        result = f(*places)
    session = cytape.Session(graph)
    for _ in range(2):  # the second time of an optimised plan
        found = session.run(result, dict(zip(places, arrays, strict=True)))
    return found


X = np.array([0.5, 1.5, 0.7])
ONE = np.array([2.0])
SQUARE = np.ones((3, 2))
# Functions, and arguments that NumPy refuses, and that it takes.
CASES = {
    "split": (lambda x: np.split(x, 2)[0], [np.arange(7.0)], [np.arange(6.0)]),
    "split of columns": (lambda x: np.split(x, 2, 1)[1], [np.ones((2, 3))], [np.ones((2, 4))]),
    "hsplit": (lambda x: np.hsplit(x, 2)[1], [np.arange(7.0)], [np.arange(6.0)]),
    "vsplit": (lambda x: np.vsplit(x, 2)[1], [SQUARE], [np.ones((4, 2))]),
    "dsplit": (lambda x: np.dsplit(x, 2)[1], [np.ones((1, 2, 3))], [np.ones((1, 2, 4))]),
    "gradient": (np.gradient, [ONE], [X]),
    "gradient of order 2": (lambda x: np.gradient(x, edge_order=2), [X[:2]], [X]),
    "gradient with distances": (np.gradient, [X, ONE.repeat(2)], [X * X, np.arange(3.0)]),
    "average": (lambda x, w: np.average(x, weights=w), [X, ONE], [X, X]),
    "average of matrices": (lambda x, w: np.average(x, weights=w), [SQUARE, np.ones((3, 1))], [
        SQUARE, SQUARE * 2]),
    "average of columns": (lambda x, w: np.average(x, 0, w), [SQUARE, ONE], [SQUARE, X]),
    "average of lines": (lambda x, w: np.average(x, 0, w), [X, ONE], [X, X]),
    "histogram": (lambda x, w: np.histogram(x, [0, 1, 2], weights=w)[0] * x[0], [X, ONE], [X, X]),
    "histogramdd": (lambda w: np.histogramdd(X[:, None], 2, weights=w)[0], [ONE], [X]),
    "aweights": (lambda x, w: np.cov(x, aweights=w), [SQUARE.T, ONE], [SQUARE.T * X, X]),
    "fweights": (lambda x: np.cov(x, fweights=[2]), [SQUARE.T], [ONE]),
    "interp": (lambda x, y: np.interp(0.6, x, y), [X, ONE], [np.arange(3.0), X]),
    "windows": (lambda x: sliding_window_view(x, 3), [X[:2]], [np.arange(4.0)]),
    "polyint": (lambda k: cnp.polyint([1.0, 2.0], 3, k), [X[:2]], [X]),
    "vmap": (lambda x, y: cytape.vmap(np.multiply)(x, y), [X, ONE], [X, X * X])}


@each("f, refused, taken", CASES.values(), ids=CASES)
def test_errors_and_results_are_those_of_known_extents(f, refused, taken):
    with pytest.raises((RuntimeError, TypeError, ValueError)) as raised:
        f(*refused)
    kind, message = raised.type, str(raised.value)
    expected = f(*taken)
    if f is CASES["vmap"][0]:
        message = "mapped axes must have the same length, got"
    for way in OPEN:
        with pytest.raises(kind, match=re.escape(message)):
            run(way, f, refused)
        np.testing.assert_allclose(
            np.reshape(run(way, f, taken), np.shape(expected)), expected, err_msg=way)


@each("f, refused, taken", CASES.values(), ids=CASES)
def test_derivatives_are_those_of_known_extents(f, refused, taken):
    def loss(*xs):
        return np.sum(f(*xs) ** 2)

    taken = [np.asarray(x, float) for x in taken]
    directions = [np.linspace(1.0, 2.0, x.size).reshape(x.shape) for x in taken]
    signature = [cytape.Spec.of((None,) * x.ndim, float) for x in taken]
    traced = cytape.function(loss, input_signature=signature)
    for argument in range(len(taken)):
        np.testing.assert_allclose(
            cytape.grad(traced, argument)(*taken), cytape.grad(loss, argument)(*taken))
    np.testing.assert_allclose(
        cytape.jvp(traced, taken, directions)[1], cytape.jvp(loss, taken, directions)[1])
    np.testing.assert_allclose(cytape.hessian(traced)(*taken), cytape.hessian(loss)(*taken))
    with pytest.raises((RuntimeError, TypeError, ValueError)):
        cytape.grad(traced)(*refused)


@each("f, refused, taken", [
    (lambda x: np.split(x, 2)[0], np.ones((2, 3)), np.arange(8.0).reshape(2, 4)),
    (np.gradient, np.ones((2, 1)), np.arange(8.0).reshape(2, 4) ** 2),
    (lambda x: np.average(x, weights=x), None, np.arange(1.0, 9.0).reshape(2, 4)),
    (lambda x: np.average(x, weights=X), np.ones((2, 1)), np.arange(6.0).reshape(2, 3))])
def test_members_of_a_batch_are_checked(f, refused, taken):
    mapped = cytape.function(cytape.vmap(f), input_signature=[cytape.Spec.of((None, None), float)])
    np.testing.assert_allclose(mapped(taken), [f(x) for x in taken])
    if refused is not None:
        with pytest.raises((TypeError, ValueError)):
            mapped(refused)


def test_degrees_of_freedom_are_none_at_the_least():
    cov = cytape.function(
        lambda x: np.cov(x, ddof=3), input_signature=[cytape.Spec.of((2, None), float)])
    with np.errstate(divide="ignore", invalid="ignore"):
        found = cov(np.array([[1.0, 2.0], [3.0, 5.0]]))
    np.testing.assert_array_equal(found, np.full((2, 2), np.inf))
    x = np.array([[1.0, 2.0, 4.0, 3.0], [3.0, 5.0, 1.0, 2.0]])
    np.testing.assert_allclose(cov(x), np.cov(x, ddof=3))


def test_polyfit_scales_the_covariance_of_more_points_than_coefficients():
    fit = cytape.function(
        lambda x, y: np.polyfit(x, y, 1, rcond=1e-15, cov=True)[1],
        input_signature=[cytape.Spec.of((None,), float)] * 2)
    x, y = np.array([0.0, 1.0, 2.0, 3.0]), np.array([1.0, 3.0, 2.0, 5.0])
    np.testing.assert_allclose(fit(x, y), np.polyfit(x, y, 1, rcond=1e-15, cov=True)[1])
    for few, match in (((x[:2], y[:2]), "exceed order"), ((x, y[:1]), "same length")):
        with pytest.raises((TypeError, ValueError), match=match):
            fit(*few)


def test_it_is_an_op_where_extents_are_open_only():
    with cytape.Graph().as_default() as graph:
        x, known = cytape.placeholder("float64", (None, 4)), cytape.placeholder("float64", (4,))
        assert with_extents(known, ValueError, "few", least=[(0, 4)]) is known
        assert with_extents(known, ValueError, "odd", like=x, same=[(0, 1)]) is known
        checked = with_extents(x, ValueError, "few", least=[(0, 2)])
        assert checked.shape == (None, 4)
        assert checked.op.type == "CheckedExtents"
        with pytest.raises(ValueError, match="odd"):
            with_extents(x, ValueError, "odd", multiple=[(0, 2), (1, 3)])
    session = cytape.Session(graph)
    np.testing.assert_array_equal(session.run(checked, {x: np.ones((2, 4))}), np.ones((2, 4)))
    with pytest.raises(ValueError, match="few"):
        session.run(checked, {x: np.ones((1, 4))})


def test_shapes_are_compared_axis_by_axis():
    x = np.ones((2, 3))
    assert with_shape_of(np.zeros((2, 3)), x, TypeError, "shape") is x
    for other in ((3, 2), (2,), (2, 3, 1)):
        with pytest.raises(TypeError, match="shape"):
            with_shape_of(np.zeros(other), x, TypeError, "shape")
    with cytape.Graph().as_default():
        anything = cytape.placeholder("float64", None)
        assert with_shape_of(anything, x, TypeError, "shape").op.type == "CheckedExtents"


def test_graphs_that_check_are_saved(tmp_path):
    with cytape.Graph().as_default() as graph:
        x = cytape.placeholder("float64", (None,), name="x")
        cytape.identity(np.split(x, 2)[1], name="half")
    graph.save(tmp_path / "graph")
    loaded = cytape.Graph.load(tmp_path / "graph")
    session = cytape.Session(loaded)
    np.testing.assert_array_equal(session.run("half:0", {"x:0": np.arange(4.0)}), [2.0, 3.0])
    with pytest.raises(ValueError, match="equal division"):
        session.run("half:0", {"x:0": np.arange(3.0)})


def test_plans_check_without_python():
    with cytape.Graph().as_default() as graph:
        x = cytape.placeholder("float64", (None,))
        y = with_extents(x * 2.0, ValueError, "few", least=[(0, 2)]) + 1.0
    trace = cytape.graph.RunTrace()
    session = cytape.Session(graph)
    np.testing.assert_array_equal(session.run(y, {x: np.ones(2)}, options=trace), [3.0, 3.0])
    assert checked_extents_op.name == "CheckedExtents"
    assert "CheckedExtents" not in str(trace.table())


def test_extents_that_the_caller_knows_are_added():
    with cytape.Graph().as_default() as graph:
        x, anything = cytape.placeholder("float64", (None, 2)), cytape.placeholder("float64", None)
        assert ensure_shape(x, None) is ensure_shape(x, (None, 2)) is x
        assert ensure_shape(anything, (None, 2)).shape == (None, 2)
        y = ensure_shape(x, (3, None))
        assert y.shape == (3, 2)
        assert ensure_shape(y, (None, 2)) is y
        slope = cytape.gradients([cnp.sum(y * y)], [x])[0]
        assert slope.shape == (3, 2)
        for wrong in ((None, 3), (2,)):
            with pytest.raises(GraphError, match="was expected"):
                ensure_shape(x, wrong)
    session, ones = cytape.Session(graph), np.ones((3, 2))
    np.testing.assert_array_equal(session.run(slope, {x: ones}), 2 * ones)
    with pytest.raises(GraphError, match="was expected"):
        session.run(y, {x: np.ones((4, 2))})
