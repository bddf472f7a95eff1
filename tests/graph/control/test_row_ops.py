"""Ops on rows: their derivatives are each other's, and no rule looks at all rows."""

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from cytape.graph.control.row_ops import (
    blank_like_op,
    blank_op,
    capacity,
    capacity_op,
    checked_op,
    cleared_op,
    confirmed_op,
    mark_op,
    placed_op,
    positions_op,
    resized_op,
    taken_op,
    update_rows_op,
)
from tests.cases import each

rng = np.random.default_rng(3)
X, N = rng.normal(size=(4, 2)), np.int64(4)
ONE, SOME = np.int64(2), np.array([3, 0, 3])

LINEAR = {
    "take one": (lambda x: taken_op(x, ONE, N, axis=0), lambda x: x[2], X),
    "take some": (lambda x: taken_op(x, SOME, N, axis=0), lambda x: x[[3, 0, 3]], X),
    "take in a batch": (lambda x: taken_op(x, np.int64(1), np.int64(2), axis=1),
                        lambda x: x[:, 1], X),
    "place one": (lambda x: placed_op(x, ONE, N, axis=0),
                  lambda x: np.stack([0 * x, 0 * x, x, 0 * x]), X[0]),
    "place some": (lambda x: placed_op(x, SOME, N, axis=0),
                   lambda x: np.stack([x[1], 0 * x[0], 0 * x[0], x[0] + x[2]]), X[:3]),
    "clear": (lambda x: cleared_op(x, ONE, axis=0),
              lambda x: x * np.array([[1], [1], [0], [1]]), X),
    "grow": (lambda x: resized_op(x, N, np.int64(6), axis=0),
             lambda x: np.concatenate([x, np.zeros((2, 2))]), X),
    "shrink": (lambda x: resized_op(x, N, np.int64(3), axis=0), lambda x: x[:3], X),
    "confirm": (lambda x: confirmed_op(x, np.ones(4, bool)), lambda x: x * 1.0, X),
}


@each("name", LINEAR)
def test_linear_ops_in_all_modes(name):
    op, plain, x = LINEAR[name]
    np.testing.assert_array_equal(op(cytape.constant(x)), plain(x))
    cytape.testing.check_grads(lambda x: cnp.sin(op(x)), (x,), order=2)
    np.testing.assert_allclose(
        cytape.jacfwd(op)(x), cytape.jacfwd(lambda x: plain(x))(x))  # a batch of directions
    traced = cytape.function(op)
    np.testing.assert_array_equal(traced(x), plain(x))
    cytape.testing.check_grads(lambda x: cnp.sin(traced(x)), (x,), order=2)
    np.testing.assert_allclose(cytape.jacfwd(traced)(x), cytape.jacfwd(plain)(x))


@each("index, rows", [(ONE, X[0]), (SOME[:2], X[:2])])
@each("which", ["x", "rows", "both"])
def test_update_rows(index, rows, which):
    def f(x, rows):
        return cnp.sin(update_rows_op(x, rows, index, N, axis=0))

    expected = X.copy()
    expected[index] = rows
    np.testing.assert_array_equal(f(X, rows), np.sin(expected))
    if which == "both":
        cytape.testing.check_grads(f, (X, rows), order=2)
        cytape.testing.check_grads(cytape.function(f), (X, rows), order=2)
        return
    g = (lambda x: f(x, rows)) if which == "x" else lambda rows: f(X, rows)
    cytape.testing.check_grads(g, (X if which == "x" else rows,), order=2)
    argument = X if which == "x" else rows
    np.testing.assert_allclose(cytape.jacfwd(g)(argument), _columns(g, argument), atol=1e-12)


def _columns(g, x):
    units = np.eye(x.size).reshape(x.size, *x.shape)
    columns = [cytape.jvp(g, (x,), (unit,))[1] for unit in units]
    return np.moveaxis(np.stack(columns), 0, -1).reshape(*columns[0].shape, *x.shape)


def test_rows_are_marked_once():
    written = np.zeros(3, bool)
    assert mark_op(written, np.int64(1)).tolist() == [False, True, False]
    assert mark_op(written, np.array([2, 0])).tolist() == [True, False, True]
    assert not written.any()
    for index, error, match in (
        (np.int64(3), IndexError, "index 3 is out of range for size 3"),
        (np.int64(-1), IndexError, "index -1 is out of range"),
        (np.array([1, 1]), ValueError, "index 1 is written a second time"),
    ):
        with pytest.raises(error, match=match):
            mark_op(written, index)
    with pytest.raises(ValueError, match="index 0 is written a second time"):
        mark_op(np.ones(3, bool), np.int64(0))


def test_indices_are_checked():
    assert checked_op(np.array([0, 2]), np.int64(3)).tolist() == [0, 2]
    for index in (3, -1):
        with pytest.raises(IndexError, match=f"index {index} is out of range for size 3"):
            checked_op(np.array([0, index]), np.int64(3))


@each("size", range(20))
def test_there_is_room_for_a_power_of_two(size):
    n = capacity(size)
    assert size <= n < max(2 * size, 1) + (size == 0)
    assert n & (n - 1) == 0
    assert int(capacity_op(np.int64(size))) == n


def test_blank_rows():
    assert blank_op(np.int64(2), shape=(3,), dtype=np.dtype("float32")).shape == (2, 3)
    assert blank_like_op(np.ones((3,), np.float32), np.int64(2)).tolist() == [[0.0] * 3] * 2
    assert positions_op(np.ones((3, 2))).tolist() == [0, 1, 2]
    graph = cytape.Graph()
    n, row = graph.placeholder("int64", ()), graph.placeholder("float64", (None,))
    rows = blank_like_op(row, n)
    assert (rows.shape, blank_op(n, shape=(3,), dtype=np.dtype(int)).shape) == (
        (None, None), (None, 3))
    assert cytape.Session(graph).run(rows, {n: 2, row: np.ones(3)}).shape == (2, 3)
