"""Indexing, taking, gathering: what the op table does not state."""

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from cytape.graph import Graph
from cytape.graph.run.interpreter import run
from tests import ways
from tests.cases import each
from tests.ways import dense, gradient


def test_tensors_can_be_part_of_an_index():
    x = np.arange(12.0).reshape(3, 4)
    rows, column = cytape.constant([2, 0, 2]), cytape.constant(1)
    np.testing.assert_array_equal(gradient(lambda t: t[rows, column], x).numpy()[:, 1], [1, 0, 2])
    np.testing.assert_array_equal(gradient(lambda t: t[t > 4], x).numpy(), x > 4)
    np.testing.assert_array_equal(cytape.constant(x)[column : column + 1].numpy(), x[1:2])


def test_an_index_array_may_change_after_it_was_used():
    x, index = cytape.constant([1.0, 2.0, 3.0]), np.array([0, 0])
    with ways.watching(x, persistent=True) as tape:
        picked, taken = x[index], np.take(x, index)
    index[:] = 2
    np.testing.assert_array_equal(tape.gradient(picked, x).numpy(), [2, 0, 0])
    np.testing.assert_array_equal(tape.gradient(taken, x).numpy(), [2, 0, 0])


def test_a_number_in_the_index_may_be_a_variable_that_changes():
    n, x = cytape.Variable(2), cytape.constant([1.0, 2.0, 3.0])
    tape, y = ways.taped(lambda x: x[:n], x)
    n.assign(1)
    np.testing.assert_array_equal(tape.gradient(y, x).numpy(), [1, 1, 0])


def test_a_plain_array_taken_at_a_tensor_of_indices_is_a_tensor():
    x, indices = np.arange(6.0).reshape(2, 3), cytape.constant([[1], [2]])
    for ours, theirs in [(cnp.take, np.take), (cnp.take_along_axis, np.take_along_axis)]:
        result = ours(x, indices, axis=1)
        assert isinstance(result, cytape.Tensor)
        np.testing.assert_array_equal(result.numpy(), theirs(x, indices.numpy(), axis=1))


def test_D_2_19_the_gradient_of_gather_is_slices():
    ones = gradient(lambda x: cytape.gather(x, [0, 2, 2]), np.arange(8.0).reshape(4, 2))
    assert isinstance(ones, cytape.IndexedSlices)
    np.testing.assert_array_equal(ones.indices.numpy(), [0, 2, 2])
    np.testing.assert_array_equal(ones.values.numpy(), np.ones((3, 2)))
    assert ones.dense_shape == (4, 2)
    np.testing.assert_array_equal(ones.to_tensor().numpy()[:, 0], [1, 0, 2, 0])


def test_D_2_19_of_a_variable_too():
    table = cytape.Variable(np.ones((4, 2)))
    tape, y = ways.taped(lambda: cytape.gather(table, [3, 3]))
    slices = tape.gradient(y, table)
    assert isinstance(slices, cytape.IndexedSlices)
    np.testing.assert_array_equal(slices.indices.numpy(), [3, 3])


def test_D_2_19_two_gathers_concatenate():
    both = ways.gradient(
        lambda x: 2 * np.sum(cytape.gather(x, [0, 2])) + 3 * np.sum(cytape.gather(x, [[1], [2]])),
        np.arange(4.0))
    assert isinstance(both, cytape.IndexedSlices)
    order = np.argsort(both.values.numpy(), kind="stable")
    np.testing.assert_array_equal(both.values.numpy()[order], [2, 2, 3, 3])
    np.testing.assert_array_equal(both.indices.numpy()[order], [0, 2, 1, 2])


def test_D_2_19_one_dense_contribution_makes_the_sum_dense():
    total = gradient(lambda x: np.sum(cytape.gather(x, [0, 2, 2])) + np.sum(x), np.arange(4.0))
    assert isinstance(total, cytape.Tensor)
    np.testing.assert_array_equal(total.numpy(), [2, 1, 3, 1])


def test_gather_along_another_axis_is_dense():
    total = gradient(lambda x: cytape.gather(x, [0, 0], axis=1), np.ones((2, 2)))
    np.testing.assert_array_equal(total.numpy(), [[2, 0], [2, 0]])


def test_take_counts_a_list_of_floats_as_integers_like_numpy():
    x = np.arange(3.0)
    slices = gradient(lambda t: np.take(t, [1.5, 2], axis=0), x)
    np.testing.assert_array_equal(slices.to_tensor().numpy(), [0, 1, 1])


# -- tensors without a value yet as indices --------------------------------------------------------

TABLE = np.arange(24.0).reshape(4, 3, 2)
SYMBOLIC_INDICES = {
    "an integer": (lambda x, i: x[i], np.array(2), (3, 2)),
    "one from the end": (lambda x, i: x[i], np.array(-1), (3, 2)),
    "an integer beside a slice": (lambda x, i: x[1:, i], np.array(0), (3, 2)),
    "integers": (lambda x, i: x[i], np.array([3, 0, 3]), (3, 3, 2)),
    "integers along a later axis": (lambda x, i: x[:, i], np.array([2, 2]), (4, 2, 2)),
    "integers apart": (lambda x, i: x[i, :, i % 2], np.array([3, 0]), (2, 3)),
    "a new axis": (lambda x, i: x[None, i], np.array([3, 0]), (1, 2, 3, 2)),
    "a slice": (lambda x, i: x[i : i + 2], np.array(1), (None, 3, 2)),
    "a reversed slice": (lambda x, i: x[:, i:0:-1], np.array(2), (4, None, 2)),
    "a mask": (lambda x, i: x[i], np.array([True, False, True, True]), (None, 3, 2)),
    "a mask of two axes": (lambda x, i: x[i], np.eye(4, 3, dtype=bool), (None, 2)),
    "a list": (lambda x, i: x[[i, 0, i]], np.array(3), (3, 3, 2)),
    "take": (lambda x, i: np.take(x, i, 1), np.array([1, 1]), (4, 2, 2)),
    "take, clipped": (lambda x, i: np.take(x, i, 0, mode="clip"), np.array([9, 1]), (2, 3, 2)),
    "gather": (lambda x, i: cytape.gather(x, i), np.array([[1, 1]]), (1, 2, 3, 2)),
    "take_along_axis": (
        lambda x, i: np.take_along_axis(x, i, 0), np.zeros((1, 3, 2), int), (1, 3, 2)),
    "compress": (
        lambda x, i: np.compress(i, x, axis=1), np.array([True, False, True]), (4, None, 2)),
    "extract": (lambda x, i: np.extract(i, x), TABLE > 7, (None,)),
    "repeat": (lambda x, i: np.repeat(x, i, axis=0), np.array([2, 0, 1, 3]), (None, 3, 2)),
    "where": (lambda x, i: np.where(i, x, -x), TABLE > 7, (4, 3, 2))}


@each(known=[True, False], name=SYMBOLIC_INDICES)
def test_a_symbolic_index(name, known):
    select, index, shape = SYMBOLIC_INDICES[name]
    graph = Graph()
    with graph.as_default():
        x = graph.placeholder(np.dtype(float), TABLE.shape if known else (None,) * 3)
        i = graph.placeholder(index.dtype, index.shape)
        with ways.watching(x) as tape:
            y = select(x, i)
            z = (y * y).sum()
        gradient = dense(tape.gradient(z, x))
    if known:
        assert y.shape == shape
    feeds = {graph.symbol_of(x): TABLE, graph.symbol_of(i): index}
    found, slope = run(graph, [graph.symbol_of(y), graph.symbol_of(gradient)], feeds)
    eager = cytape.constant(index)
    np.testing.assert_array_equal(found, select(cytape.constant(TABLE), eager).numpy())
    expected = cytape.grad(lambda x: (select(x, eager) ** 2).sum())(TABLE)
    np.testing.assert_array_equal(slope, expected)


def test_an_array_that_has_a_value_is_indexed_by_a_symbol():
    graph = Graph()
    i = graph.placeholder(np.dtype(int), ())
    y = cytape.constant(TABLE)[i, 0]
    assert (y.graph is graph, y.shape) == (True, (2,))
    (found,) = run(graph, [graph.symbol_of(y)], {graph.symbol_of(i): np.array(1)})
    np.testing.assert_array_equal(found, TABLE[1, 0])


def test_a_variable_as_an_index_is_read_when_the_graph_runs():
    graph, v = Graph(), cytape.Variable(1)
    with graph.as_default():
        y = cytape.constant(TABLE)[v]
    np.testing.assert_array_equal(run(graph, [graph.symbol_of(y)], {})[0], TABLE[1])
    v.assign(3)
    np.testing.assert_array_equal(run(graph, [graph.symbol_of(y)], {})[0], TABLE[3])


def test_bad_symbolic_indices():
    graph = Graph()
    x = graph.placeholder(np.dtype(float), (4, 3))
    with pytest.raises(IndexError, match="float64"):
        x[graph.placeholder(np.dtype(float), ())]
    i = graph.placeholder(np.dtype(int), ())
    with pytest.raises(IndexError, match="too many"):
        x[i, i, i]
    with pytest.raises(IndexError, match=r"\(3,\)"):
        x[graph.placeholder(np.dtype(bool), (3,))]
    y = x[i]
    with pytest.raises(IndexError):
        run(graph, [graph.symbol_of(y)],
            {graph.symbol_of(x): np.ones((4, 3)), graph.symbol_of(i): np.array(4)})
