"""Derivatives of a loop's body: made once, and kept with the body."""

import gc
import weakref

import numpy as np

import cytape
import cytape.numpy as cnp
from cytape.graph.control.control_ops import LoopOp
from tests.cases import each

X = np.array([0.3, 0.7])


def looped(x, a):
    return cytape.while_loop(
        lambda i, _: i < 3, lambda i, y: (i + 1, cnp.sin(y) * a), (cytape.constant(0), x))[1]


def bodies(graph):
    return [attrs["body"] for op, attrs in zip(graph.ops, graph.attrs, strict=True)
            if isinstance(op, LoopOp)]


def test_two_gradients_of_a_loop_share_their_bodies():
    with cytape.Graph().as_default() as graph:
        x, a = graph.placeholder("float64", (2,)), graph.placeholder("float64", (2,))
        y = looped(x, a)
        n_before = len(bodies(graph))
        results = []
        for seed in 1.0, 2.0:
            results += cytape.gradients(y, [x, a], grad_ys=[cnp.full(2, seed)])
    forward, backward, *again = bodies(graph)[n_before:]
    assert again == [forward, backward]
    found = cytape.Session(graph).run(results, {x: X, a: X})
    np.testing.assert_allclose(found[2], 2 * found[0])
    np.testing.assert_allclose(found[3], 2 * found[1])
    wanted = cytape.grad(lambda x, a: cnp.sum(looped(x, a)), argnums=(0, 1))(X, X)
    for x, y in zip(found, wanted, strict=False):
        np.testing.assert_allclose(x, y, rtol=1e-12)


def test_gradients_of_other_inputs_and_tangents_have_bodies_of_their_own():
    with cytape.Graph().as_default() as graph:
        x, a = graph.placeholder("float64", (2,)), graph.placeholder("float64", (2,))
        y = looped(x, a)
        [of_x] = cytape.gradients(y, x)
        [of_a] = cytape.gradients(y, a)
    found = cytape.Session(graph).run([of_x, of_a], {x: X, a: X})
    for argnum in 0, 1:
        wanted = cytape.grad(lambda x, a: cnp.sum(looped(x, a)), argnums=argnum)(X, X)
        np.testing.assert_allclose(found[argnum], wanted, rtol=1e-12)
        moving = [X, X]
        traced = cytape.function(lambda x, a: cytape.jvp(looped, (x, a), (x, a))[1])(*moving)
        np.testing.assert_allclose(traced, cytape.jvp(looped, (X, X), (X, X))[1], rtol=1e-12)


@each("order", [1, 2])
def test_bodies_and_their_derivatives_go_without_the_collector(order):
    def f(x):
        return cnp.sum(looped(x, x))

    derivative = f
    for _ in range(order):
        derivative = cytape.grad(lambda x, g=derivative: cnp.sum(g(x)))
    traced = cytape.function(derivative)
    traced(X)
    graph = traced.get_concrete_function(X).graph
    references = [weakref.ref(body) for body in bodies(graph)]
    assert any(body.derived for body in bodies(graph))
    gc.collect()
    gc.disable()
    try:
        del graph, traced
        assert len(references) > 1
        assert [reference() for reference in references] == [None] * len(references)
    finally:
        gc.enable()
