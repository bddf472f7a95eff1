"""Derivatives worked out when a graph runs: right for any shape, of any order, in both modes."""

import numpy as np
import pytest

import cytape
from cytape import nn
from cytape.graph import Graph
from cytape.graph.run.interpreter import run
from cytape.ops.adjoints.deferred_derivatives import composed
from cytape.ops.calls.tangents import fetch
from cytape.ops.engine.op_kinds import find
from cytape.testing import check_grads
from tests import ways
from tests.cases import each
from tests.ops.forward_mode import entered, recorder_of

X = np.array([[0.5, -1.0, 2.0], [1.5, 0.25, -0.5]])
FUNCTIONS = {
    "prod": lambda x: np.prod(x, axis=1), "prod of all": lambda x: np.prod(x),
    "cumprod": lambda x: np.cumprod(x, axis=0), "tile": lambda x: np.tile(x, (2, 3)),
    "repeat": lambda x: np.repeat(x, 2, axis=1), "diagonal": lambda x: np.diagonal(x, 1),
    "trace of a product": lambda x: np.einsum("ij,kj->ik", x, x).trace(),
    "einsum": lambda x: np.einsum("ij->j", x),
    "pooling": lambda x: nn.avg_pool2d(x[None, :, :, None], 2, 1, "VALID")}
REARRANGED = {
    "repeat": lambda x: np.repeat(x, 2), "tile": lambda x: np.tile(x, 2),
    "resize": lambda x: np.resize(x, (2, 4)),
    "sliding window": lambda x: np.lib.stride_tricks.sliding_window_view(x, 2),
    "split": lambda x: sum(part ** 2 for part in np.split(x, 3)),
    **{f"pad {mode}": lambda x, mode=mode: np.pad(x, 2, mode) for mode in (
        "edge", "wrap", "reflect", "symmetric", "maximum", "minimum", "mean", "median")}}


def unknown():
    graph = Graph()
    return graph, graph.placeholder(np.dtype(float), (None, None))


@each("name", FUNCTIONS)
def test_first_and_second_derivative(name):
    function = FUNCTIONS[name]

    def loss(x):
        y = function(x)
        return (y * y * y).sum()

    graph, x = unknown()
    with ways.watching(x) as outer:
        first = ways.gradient(loss, x)
        squared = (first * first).sum()
    second = outer.gradient(squared, x)
    assert "DeferredVjp" in {op.name for op in graph.ops}
    found = run(graph, [graph.symbol_of(first), graph.symbol_of(second)], {graph.symbol_of(x): X})
    np.testing.assert_allclose(found[0], cytape.grad(loss)(X), rtol=1e-12)
    expected = cytape.grad(lambda x: (cytape.grad(loss)(x) ** 2).sum())(X)
    np.testing.assert_allclose(found[1], expected, rtol=1e-10)


@each("name", ["prod", "cumprod"])
def test_tangents(name):
    graph, x = unknown()
    with graph.as_default():
        t = graph.placeholder(np.dtype(float), (None, None))
        recorder = recorder_of([x], [t])
        with entered(recorder):
            y = FUNCTIONS[name](x)
        tangent = fetch(recorder, y.id)
    direction = np.ones_like(X)
    feeds = {graph.symbol_of(x): X, graph.symbol_of(t): direction}
    (found,) = run(graph, [graph.symbol_of(tangent)], feeds)
    _, expected = cytape.jvp(FUNCTIONS[name], (X,), (direction,))
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_the_node_does_not_record_or_build_when_it_runs():
    graph, x = unknown()
    gradient = ways.gradient(np.prod, x)
    n_nodes = graph.n_nodes
    with graph.as_default(), cytape.GradientTape():
        run(graph, [graph.symbol_of(gradient)], {graph.symbol_of(x): X})
    assert graph.n_nodes == n_nodes


def test_eager_programs_have_no_use_for_it():
    check_grads(lambda x: np.prod(x, axis=1), [X], order=2)


@each("part", [0, 1])
def test_some_outputs_have_no_gradient(part):
    graph, x = unknown()
    gradient = ways.gradient(lambda x: (np.linalg.qr(x)[part] ** 3).sum(), x)
    assert "DeferredVjp" in {op.name for op in graph.ops}
    (found,) = run(graph, [graph.symbol_of(gradient)], {graph.symbol_of(x): X})
    expected = cytape.grad(lambda x: (np.linalg.qr(x)[part] ** 3).sum())(X)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@each("seeds", [[], [1.0, 2.0], [np.ones(2)]], ids=len)
def test_gradients_that_do_not_fit_the_outputs_are_refused(seeds):
    op = find("DeferredVjp")
    with pytest.raises(ValueError):
        op(np.ones(3), *seeds, of="Sin", attrs={}, n_inputs=1, needs=(True,))


@pytest.mark.parametrize("name", REARRANGED)
@each("transform", [
    cytape.hessian, lambda f: cytape.jacfwd(cytape.jacrev(f)),
    lambda f: lambda x: cytape.jacfwd(cytape.vmap(cytape.grad(f)))(x[None])[0, :, 0]])
def test_hessians_in_half_precision_of_ops_that_move_elements(name, transform):
    hessian = transform(lambda x: np.sum(REARRANGED[name](x) ** 2))
    x = np.array([1.0, 2.0, 3.0])
    np.testing.assert_allclose(hessian(x.astype("float16")), hessian(x), rtol=1e-2, atol=1e-2)


def test_a_composed_op_of_one_tensor_twice():
    op = composed("UsedTwice", np.multiply, lambda x, y: x * y, lambda x, y: x)
    x = cytape.constant([2.0, 3.0])
    for options in ({}, {"recorded": True}):
        np.testing.assert_array_equal(ways.gradient(lambda x: op(x, x), x, **options), [4, 6])
