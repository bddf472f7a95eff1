"""Bodies as code within other code: compiled once for each combination of specs."""

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from cytape.tensor.spec import symbolic_spec


def deep(x, depth):
    if not depth:
        return x * 1.5
    return cytape.cond(x < 100.0, lambda: deep(x, depth - 1), lambda: x)


@pytest.mark.parametrize("depth", [1, 10])
def test_bodies_within_bodies(depth):
    f = cytape.function(lambda x: deep(x, depth))
    for _ in range(3):
        assert float(f(np.array(2.0))) == 3.0
    assert float(cytape.grad(f)(np.array(2.0))) == 1.5


def test_bodies_of_unknown_extents_are_run_for_those_there_are():
    @cytape.function(input_signature=[symbolic_spec((None,), "float64")])
    def f(x):
        _, y = cytape.while_loop(
            lambda i, y: i < 4, lambda i, y: (i + 1, y * 0.5 + x), (cytape.constant(0), x))
        return y

    for n in (1, 3, 700, 3):
        x = np.arange(float(n))
        y = x
        for _ in range(4):
            y = y * 0.5 + x
        np.testing.assert_allclose(f(x), y)
        np.testing.assert_allclose(
            cytape.grad(lambda x: cnp.sum(f(x)))(x), np.full(n, 1.9375))


def test_gradients_in_a_session():
    graph = cytape.Graph()
    with graph.as_default():
        x = graph.placeholder("float64", (), name="x")
        _, y = cytape.while_loop(
            lambda i, y: i < 3, lambda i, y: (i + 1, cnp.sin(y)), (cytape.constant(0), x))
        (slope,) = cytape.gradients(y, [x])
    expected = cytape.Session(graph).run([y, slope], {x: 0.5})
    step = np.cos(0.5) * np.cos(np.sin(0.5)) * np.cos(np.sin(np.sin(0.5)))
    np.testing.assert_allclose(expected, [np.sin(np.sin(np.sin(0.5))), step])
