"""Orders and positions: through NumPy's functions, by method, and in a graph."""

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from cytape.graph import Graph
from cytape.graph.run.reference import run

X = np.array([[3.0, 0.0, 1.0], [0.5, 2.0, 0.0]])


@pytest.mark.parametrize("call", [
    lambda x: np.argsort(x), lambda x: x.argsort(axis=0), lambda x: np.argpartition(x, 1),
    lambda x: np.lexsort((x[0], x[1])), lambda x: cnp.lexsort([x[0]]), lambda x: np.lexsort((x,)),
    lambda x: np.lexsort((x,), axis=0), lambda x: np.lexsort(x),
    lambda x: np.searchsorted(x[0, 1:], x[1]),
    lambda x: x[0].searchsorted(1.5), lambda x: np.digitize(x, [1.0, 2.0]),
    lambda x: cnp.argsort(x, stable=True),
])
def test_orders_are_tensors_without_gradient(call):
    x = cytape.constant(X)
    with cytape.GradientTape() as tape:
        tape.watch(x)
        order = call(x)
    assert isinstance(order, cytape.Tensor)
    np.testing.assert_array_equal(order.numpy(), call(X))
    assert tape.gradient(order, x) is None


@pytest.mark.parametrize("call", [
    lambda x: np.nonzero(x), lambda x: x.nonzero(), lambda x: np.where(x > 0.7),
    lambda x: cnp.nonzero(x),
])
@pytest.mark.parametrize("shape", [(2, 3), (None, None)])
def test_positions_in_a_graph(call, shape):
    graph = Graph()
    x = graph.placeholder(np.dtype(float), shape)
    rows, columns = call(x)
    assert (rows.shape, rows.dtype) == ((None,), np.intp)
    found = run(graph, [graph.symbol_of(rows), graph.symbol_of(columns)], {graph.symbol_of(x): X})
    np.testing.assert_array_equal(found, call(X))


def test_the_elements_there_have_gradients():
    graph = Graph()
    with graph.as_default():
        x = graph.placeholder(np.dtype(float), (None, 3))
        with cytape.GradientTape() as tape:
            tape.watch(x)
            y = x[np.nonzero(x)]
            z = (y * y).sum() + np.take_along_axis(x, np.argsort(x), -1)[:, 0].sum()
        gradient = tape.gradient(z, x)
    (found,) = run(graph, [graph.symbol_of(gradient)], {graph.symbol_of(x): X})
    lowest = np.zeros_like(X)
    lowest[0, 1] = lowest[1, 2] = 1
    np.testing.assert_array_equal(found, 2 * X + lowest)
