"""Errors of `numpy_function` and of its derivatives."""

import os
import tempfile

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from cytape.errors import (
    DetachedError,
    GraphFileError,
    InvalidGradientError,
    NotDifferentiableError,
)
from tests import ways
from tests.autodiff.custom.test_numpy_function import SPEC, X, in_eager
from tests.bodies import traced
from tests.cases import each


@each("place", [in_eager, cytape.function])
@each(("result", "message"), [
    (np.ones(2), r"result 0 of wrong has the shape \(2,\).* its spec says \(3,\)"),
    (np.ones((3, 1)), r"result 0 of wrong has the shape \(3, 1\)"),
    (np.ones(3, np.float32), "result 0 of wrong .* float32; its spec says .* float64"),
    (np.ones(3, int), "result 0 of wrong .* int64; its spec says .* float64"),
    (1.0, r"result 0 of wrong has the shape \(\)"),
    ([np.ones(3), np.ones(3)], "does not have the specs given for it: structures differ"),
    (None, "result 0 of wrong .* object"), ("abc", "result 0 of wrong .* <U3"),
])
def test_results_that_are_not_as_their_specs_say(place, result, message):
    def wrong(x):
        return result

    run = place(lambda x: cytape.numpy_function(wrong, x, specs=SPEC))
    x = cytape.constant(X)
    with ways.watching(x) as tape:
        with pytest.raises(ValueError, match=message):
            run(x)
        y = cnp.sum(x * x)
    np.testing.assert_array_equal(tape.gradient(y, x), 2 * X)


def test_errors_of_the_function_name_the_line_that_built_the_call():
    def fails(x):
        if x[0] < 0:
            raise KeyError("negative")
        return x

    def f(x):
        return cytape.numpy_function(fails, x, specs=SPEC) + 1.0  # the line

    line = f.__code__.co_firstlineno + 1
    places = [
        cytape.function(f), cytape.function(lambda x: cytape.function(f)(x)),
        cytape.function(lambda x: cytape.cond(cnp.sum(x) < 99, lambda: f(x), lambda: x)),
        cytape.function(lambda x: cytape.while_loop(
            lambda i, _: i < 1, lambda i, v: (i + 1, f(v)), (np.array(0), x))[1]),
    ]
    for run in places:
        for _ in range(2):
            with pytest.raises(KeyError, match="negative") as info:
                run(cytape.constant(-np.ones(3)))
            assert any(f"{__file__}:{line} in f" in note
                       for note in info.value.__notes__)
        np.testing.assert_array_equal(run(cytape.constant(np.ones(3))), 2 * np.ones(3))


@each("place", [in_eager, *traced("itself", "cond", "while_loop").values()])
def test_a_derivative_that_is_not_known_is_an_error(place):
    def opaque(x):
        return x * x

    f = place(lambda x, w: cytape.numpy_function(opaque, x, specs=SPEC) * w)
    x, w = cytape.constant(X), cytape.constant(2.0)
    message = "opaque by numpy_function has no gradient.*grad_func.*stop_gradient its arguments"
    tape, y = ways.taped(lambda x, w: cnp.sum(f(x, w)), x, w, persistent=True)
    for _ in range(2):
        with pytest.raises(NotDifferentiableError, match=message):
            tape.gradient(y, x)
    for transform in (
        lambda: cytape.jvp(lambda x: f(x, w), (X,), (X,)),
        lambda: cytape.function(cytape.grad(lambda x: cnp.sum(f(x, w))))(X),
        lambda: cytape.grad(cytape.grad(lambda x: cnp.sum(f(x, w))))(X),
    ):
        with pytest.raises(NotDifferentiableError, match=message):
            transform()
    if place in (in_eager, cytape.function):  # a branch or loop is differentiated as a whole
        assert float(cytape.grad(lambda w: cnp.sum(f(x, w)))(2.0)) == pytest.approx(np.sum(X * X))
    stopped = place(lambda x, w: cytape.numpy_function(
        opaque, cytape.stop_gradient(x), specs=SPEC) * x)
    np.testing.assert_allclose(cytape.grad(lambda x: cnp.sum(stopped(x, w)))(X), X * X)


def test_a_derivative_that_is_not_asked_for_is_no_error():
    """A metric beside a loss, whose gradient is that of the loss."""
    @cytape.function
    def f(x):
        return cnp.sum(x * x), cytape.numpy_function(np.cumsum, x, specs=SPEC)

    x = cytape.constant(X)
    tape, (loss, metric) = ways.taped(f, x)
    np.testing.assert_array_equal(metric, np.cumsum(X))
    np.testing.assert_array_equal(tape.gradient(loss, x), 2 * X)
    np.testing.assert_array_equal(cytape.grad(lambda x: f(x)[0])(X), 2 * X)
    np.testing.assert_array_equal(
        cytape.grad(lambda x: cnp.sum(cytape.grad(lambda x: f(x)[0])(x)))(X), [2.0, 2.0, 2.0])


def test_in_a_graph_a_missing_gradient_is_an_error_when_it_runs():
    with cytape.Graph().as_default() as graph:
        p = cytape.placeholder("float64", (3,))
        y = cytape.numpy_function(np.cumsum, p, specs=SPEC)
        [dp] = cytape.gradients(cnp.sum(y), p)
    session = cytape.Session(graph)
    np.testing.assert_array_equal(session.run(y, {p: X}), np.cumsum(X))
    with pytest.raises(NotDifferentiableError, match="cumsum by numpy_function has no gradient"):
        session.run(dp, {p: X})


def test_arguments_that_will_not_do():
    with pytest.raises(TypeError, match="f must be a function, got ndarray"):
        cytape.numpy_function(X, X, specs=SPEC)
    with pytest.raises(TypeError, match="grad_func must be a function, got float"):
        cytape.numpy_function(np.cumsum, X, specs=SPEC, grad_func=1.0)
    for specs in (None, float, (3,), [SPEC, "float64"]):
        with pytest.raises(TypeError, match="specs must be a cytape.Spec or a structure of them"):
            cytape.numpy_function(np.cumsum, X, specs=specs)
    with pytest.raises(TypeError, match="specs"):
        cytape.numpy_function(np.cumsum, X)


@each("place", [in_eager, cytape.function])
def test_gradients_that_will_not_do(place):
    def f(gradient):
        return place(lambda x: cytape.numpy_function(
            np.square, x, specs=SPEC, grad_func=lambda x, g: gradient(x, g)))

    with pytest.raises(InvalidGradientError, match="grad_func of square must return 1 gradients"):
        cytape.vjp(f(lambda x, g: (g, g)), X)[1](X)
    with pytest.raises(InvalidGradientError, match=r"has shape \(2, 3\)"):
        cytape.vjp(f(lambda x, g: cnp.stack([g, g])), X)[1](X)
    x = cytape.constant(X)
    assert ways.gradient(f(lambda x, g: None), x) is None


def test_a_recorded_tensor_from_elsewhere_is_not_lost():
    def f(w):
        return cytape.numpy_function(lambda x: x * w, cytape.constant(X), specs=SPEC)

    assert f(cytape.constant(2.0)).numpy().tolist() == (2 * X).tolist()
    with pytest.raises(DetachedError):
        cytape.grad(lambda w: cnp.sum(f(w)))(2.0)
    with pytest.raises(RuntimeError, match="belongs to a trace of f, which is complete"):
        cytape.function(f)(cytape.constant(2.0))


def test_graphs_with_it_cannot_be_saved():
    with cytape.Graph().as_default() as graph:
        p = cytape.placeholder("float64", (3,))
        cytape.numpy_function(np.cumsum, p, specs=SPEC)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "graph")
        with pytest.raises(GraphFileError, match="PythonValues.* cannot be saved: its attribute"):
            graph.save(path)
        assert not os.path.exists(path)
