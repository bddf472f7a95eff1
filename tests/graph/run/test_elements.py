"""x[i] in plans, where i is computed: found, copied and added to without Python."""

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from tests.cases import each
from tests.graph.plans import assert_as_reference, plan_of


@each("dtype", ["float64", "float32", "int64", "bool"])
@each("index", [
    lambda i, j: i, lambda i, j: (i, j), lambda i, j: (i, -1), lambda i, j: (0, j),
    lambda i, j: (i, j, i)])
def test_elements_are_read(index, dtype):
    graph = cytape.Graph()
    with graph.as_default():
        x = graph.placeholder(dtype, (4, 5, 6))
        i, j = graph.placeholder("int64", ()), graph.placeholder("int64", ())
        part = x[index(i, j)]
    array = np.random.default_rng(0).integers(0, 2, (4, 5, 6)).astype(dtype)
    for places in ((0, 0), (3, 4), (-1, -5), (2, -2)):
        plan = assert_as_reference(graph, [x, i, j], [part], [array, *map(np.array, places)])
        assert plan.n_calls == 0


@pytest.mark.parametrize("places", [(4, 0), (-5, 0), (0, 5), (0, -6)])
def test_places_beyond_are_errors(places):
    graph = cytape.Graph()
    with graph.as_default():
        x = graph.placeholder("float64", (4, 5))
        i, j = graph.placeholder("int64", ()), graph.placeholder("int64", ())
        part = x[i, j] * 2.0
    plan = plan_of(graph, [x, i, j], [part])
    for _ in range(2):
        with pytest.raises(IndexError, match="is out of bounds for axis") as raised:
            plan.run([np.ones((4, 5)), *map(np.array, places)])
        assert any("DynamicGetItem" in note for note in raised.value.__notes__)
        assert plan.run([np.ones((4, 5)), np.array(1), np.array(2)])[0].item() == 2.0


@pytest.mark.parametrize("uses", [1, 2])
def test_gradients_are_added_where_the_element_is(uses):
    graph = cytape.Graph()
    with graph.as_default():
        x, w = graph.placeholder("float64", (4, 3)), graph.placeholder("float64", (3,))
        i, j = graph.placeholder("int64", ()), graph.placeholder("int64", ())
        y = cnp.sum(x[i] * w) + cnp.sum(x[j] ** 3) + cnp.sum(cnp.sin(x))
        (slope,) = cytape.gradients(y, [x])
        fetches = [slope, cnp.sum(slope * x, axis=0)][:uses]
    rng = np.random.default_rng(0)
    for places in ((1, 1), (0, -1)):
        assert_as_reference(graph, [x, w, i, j], fetches, [
            rng.normal(size=(4, 3)), rng.normal(size=3), *map(np.array, places)])


def test_a_sum_of_nothing_else_is_zero_elsewhere():
    graph = cytape.Graph()
    with graph.as_default():
        x, i = graph.placeholder("float64", (4,)), graph.placeholder("int64", ())
        (slope,) = cytape.gradients(x[i] ** 2, [x])
    plan = plan_of(graph, [x, i], [slope])
    assert plan.n_calls == 0
    for _ in range(2):
        assert plan.run([np.arange(4.0), np.array(-1)])[0].tolist() == [0, 0, 0, 6]


@pytest.mark.parametrize("n", [3, 400])
def test_loops_over_elements(n):
    def total(x):
        _, y = cytape.while_loop(
            lambda i, y: i < n, lambda i, y: (i + 1, cnp.tanh(y + x[i])),
            (cytape.constant(0), cytape.constant(0.0)))
        return y

    x = np.linspace(-1, 1, n)
    graph = cytape.Graph()
    with graph.as_default():
        given = graph.placeholder("float64", (n,))
        (slope,) = cytape.gradients(total(given), [given])
    plan = plan_of(graph, [given], [slope])
    assert plan.n_calls == 0
    for _ in range(2):
        np.testing.assert_allclose(
            plan.run([x])[0], cytape.grad(total)(cytape.constant(x)), rtol=1e-12)


def test_a_place_beyond_in_a_loop_is_an_error_of_the_op():
    @cytape.function
    def f(x):
        return cytape.while_loop(
            lambda i, y: i < 9, lambda i, y: (i + 1, y + x[i]), (cytape.constant(0), x[0]))[1]

    for _ in range(3):
        with pytest.raises(IndexError, match="index 4 is out of bounds for axis 0") as raised:
            f(np.ones(4))
        assert any("DynamicGetItem" in note for note in raised.value.__notes__)
