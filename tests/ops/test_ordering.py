"""Orders and positions: through NumPy's functions, by method, and in a graph."""

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from cytape.errors import SymbolicTensorError
from cytape.graph import Graph
from cytape.graph.run.interpreter import run
from tests.cases import each
from tests.ways import taped, watching

X = np.array([[3.0, 0.0, 1.0], [0.5, 2.0, 0.0]])


@each("call", [
    lambda x: np.argsort(x), lambda x: x.argsort(axis=0), lambda x: np.argpartition(x, 1),
    lambda x: np.lexsort((x[0], x[1])), lambda x: cnp.lexsort([x[0]]), lambda x: np.lexsort((x,)),
    lambda x: np.lexsort((x,), axis=0), lambda x: np.lexsort(x),
    lambda x: np.searchsorted(x[0, 1:], x[1]), lambda x: x[0].searchsorted(1.5),
    lambda x: np.digitize(x, [1.0, 2.0]), lambda x: cnp.argsort(x, stable=True)])
def test_orders_are_tensors_without_gradient(call):
    x = cytape.constant(X)
    tape, order = taped(call, x)
    assert isinstance(order, cytape.Tensor)
    np.testing.assert_array_equal(order.numpy(), call(X))
    assert tape.gradient(order, x) is None


@each(call=[
    lambda x: np.nonzero(x), lambda x: x.nonzero(), lambda x: np.where(x > 0.7),
    lambda x: cnp.nonzero(x)], shape=[(2, 3), (None, None)])
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
        with watching(x) as tape:
            y = x[np.nonzero(x)]
            z = (y * y).sum() + np.take_along_axis(x, np.argsort(x), -1)[:, 0].sum()
        gradient = tape.gradient(z, x)
    (found,) = run(graph, [graph.symbol_of(gradient)], {graph.symbol_of(x): X})
    lowest = np.zeros_like(X)
    lowest[0, 1] = lowest[1, 2] = 1
    np.testing.assert_array_equal(found, 2 * X + lowest)


POSITIONS = {
    "flatnonzero": lambda n, x: n.flatnonzero(x), "argwhere": lambda n, x: n.argwhere(x),
    "argwhere of a number": lambda n, x: n.argwhere(x[0, 0]),
    "nanargmax": lambda n, x: n.nanargmax(x, axis=1, keepdims=True),
    "nanargmin": lambda n, x: n.nanargmin(x),
    "unravel_index": lambda n, x: n.unravel_index(n.argmax(x), x.shape),
    "unravel_index of many": lambda n, x: n.unravel_index(n.argsort(x, axis=None), (2, 3), "F"),
    "ravel_multi_index": lambda n, x: n.ravel_multi_index((n.argmax(x, 0), [0, 1, 2]), (2, 3)),
    "ix_": lambda n, x: n.ix_(n.argsort(x[:, 0]), [2, 0], x[0] > 0.5),
    "isin": lambda n, x: n.isin(x, [0.0, 2.0], invert=True),
    "isin of a tensor": lambda n, x: n.isin([0.5, 4.0], x),
    "array_equiv": lambda n, x: n.array_equiv(x, x[:1]),
    "gcd": lambda n, x: n.gcd(n.argmax(x, 0) + 4, 6),
    "lcm": lambda n, x: n.lcm.reduce(n.argmax(x, 1) + 1),
    "bitwise_count": lambda n, x: n.bitwise_count(n.argsort(x))}


@each(name=POSITIONS, namespace=[np, cnp])
def test_integers_and_truth_values_are_no_loss(name, namespace):
    def f(x):
        found = POSITIONS[name](namespace, x)
        return list(found) if isinstance(found, tuple) else [found]

    expected = POSITIONS[name](np, X)
    expected = expected if isinstance(expected, tuple) else (expected,)
    with cytape.GradientTape() as tape:
        x = cytape.constant(X)
        tape.watch(x)
        eager = f(x)
    traced = cytape.function(f)(x)
    in_branch = cytape.function(lambda x: cytape.cond(x[0, 0] > 0, lambda: f(x), lambda: f(x)))(x)
    for found in (eager, traced, in_branch):
        for one, other in zip(found, expected, strict=True):
            one = np.asarray(one)
            np.testing.assert_array_equal(one, other, strict=True)


def test_elements_at_found_positions_have_a_gradient():
    def f(x):
        return x[np.unravel_index(np.nanargmax(x), x.shape)] ** 2 + np.sum(x[np.ix_([1], [0, 1])])

    expected = [[6.0, 0.0, 0.0], [1.0, 1.0, 0.0]]
    np.testing.assert_array_equal(cytape.grad(f)(X), expected)
    np.testing.assert_array_equal(cytape.function(cytape.grad(f))(X), expected)


def test_an_extent_that_only_a_run_tells_is_asked_for():
    f = cytape.function(lambda x: cnp.unravel_index(cnp.argmax(x), x.shape),
                        input_signature=[cytape.Spec.of((None, 3), float)])
    with pytest.raises(SymbolicTensorError, match="known only when the graph runs"):
        f(X)


def test_an_empty_list_names_no_rows():
    x = cytape.constant(X)
    rows, columns = np.ix_(cytape.constant([0, 1]), [])
    assert columns.dtype == np.intp
    assert x[rows, columns].shape == (2, 0)
