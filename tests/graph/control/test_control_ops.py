"""Control ops in plans: what is run, how often, and what is handed on."""

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from cytape.errors import GraphError
from cytape.graph.control.control_ops import CondOp, LoopOp, stacked
from cytape.graph.run.executor import ValueOp
from cytape.ops.engine.declare import OPS
from cytape.tensor.spec import symbolic_spec


def test_they_run_with_values():
    assert isinstance(OPS["Cond"], CondOp)
    assert isinstance(OPS["While"], LoopOp)
    assert issubclass(CondOp, ValueOp)
    assert issubclass(LoopOp, ValueOp)


def test_arrays_are_stacked():
    spec = symbolic_spec((2,), "float32")
    rows = [np.array([i, i + 1], "float32") for i in range(3)]
    assert stacked(rows, spec).tolist() == [[0, 1], [1, 2], [2, 3]]
    empty = stacked([], symbolic_spec((None, 3), "float32"))
    assert (empty.shape, empty.dtype) == ((0, 0, 3), np.float32)
    assert stacked([], symbolic_spec(None, "int64")).shape == (0,)
    with pytest.raises(GraphError, match="must have one shape"):
        stacked([np.zeros(2), np.zeros(3)], spec)


def test_results_are_new():
    graph = cytape.Graph()
    with graph.as_default():
        x = graph.placeholder("float64", (3,))
        y, z = cytape.while_loop(lambda y, z: cnp.sum(y) < 0, lambda y, z: (y, z), (x, x))
        w = cytape.cond(cnp.sum(x) > 0, lambda: x, lambda: x)
    given = np.ones(3)
    results = cytape.Session(graph).run([y, z, w], {x: given})
    given[:] = 7
    assert [r.tolist() for r in results] == [[1.0] * 3] * 3


@pytest.mark.parametrize("size", [1, 7, 100_000])  # inside values, in the frame, and large
def test_values_of_all_sizes_are_handed_on(size):
    @cytape.function
    def f(x, a):
        _, y = cytape.while_loop(
            lambda i, y: i < 5, lambda i, y: (i + 1, cnp.where(i % 2 == 0, y * a, y + x)), (0, x))
        return y

    x, a = np.linspace(0.1, 1.0, size), np.linspace(2.0, 3.0, size)
    y = x
    for i in range(5):
        y = y * a if i % 2 == 0 else y + x
    for _ in range(3):
        np.testing.assert_allclose(f(x, a), y, rtol=1e-12)
    np.testing.assert_allclose(
        cytape.grad(lambda x: cnp.sum(f(x, cytape.constant(a))))(x), a**3 + a**2 + a, rtol=1e-12)


def test_many_iterations():
    @cytape.function
    def f(x):
        _, y = cytape.while_loop(
            lambda i, y: i < 20_000, lambda i, y: (i + 1, y * 1.0001), (0, x))
        return y

    x = cytape.constant(2.0)
    np.testing.assert_allclose(f(x), 2.0 * 1.0001**20_000, rtol=1e-9)
    np.testing.assert_allclose(cytape.grad(f)(x), 1.0001**20_000, rtol=1e-9)
