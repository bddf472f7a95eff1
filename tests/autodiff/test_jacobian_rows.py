"""Jacobians row by row: their shapes, rows that are sparse or missing, unknown extents."""

import numpy as np
import pytest

import cytape
from cytape.errors import SymbolicTensorError
from tests import ways
from tests.cases import each


def test_D_2_22_jacobian_has_the_shapes_of_target_and_source():
    x = cytape.constant(np.arange(6.0).reshape(2, 3))
    w = cytape.constant(np.arange(12.0).reshape(3, 4))
    with ways.watching(x, w, persistent=True) as tape:
        y = x @ w
        scalar = np.sum(y)
        empty = y[:0]
    by_x, by_w, by_y = tape.jacobian(y, [x, w, y])
    np.testing.assert_array_equal(by_x.numpy(), np.einsum("ik,lj->ijkl", np.eye(2), w.numpy()))
    np.testing.assert_array_equal(by_w.numpy(), np.einsum("jl,ik->ijkl", np.eye(4), x.numpy()))
    np.testing.assert_array_equal(by_y.numpy(), np.eye(8).reshape(2, 4, 2, 4))
    assert tape.jacobian(scalar, x).shape == (2, 3)
    assert tape.jacobian(empty, x).shape == (0, 4, 2, 3)


def test_D_2_22_sparse_rows_come_back_dense():
    table = cytape.constant(np.arange(6.0).reshape(3, 2))
    tape, y = ways.taped(lambda table: cytape.gather(table, [2, 0, 2]), table)
    jacobian = tape.jacobian(y, table)
    expected = np.zeros((3, 2, 3, 2))
    for row, index in enumerate([2, 0, 2]):
        expected[row, :, index, :] = np.eye(2)
    np.testing.assert_array_equal(jacobian.numpy(), expected)


def test_D_2_22_jacobian_of_unconnected_sources():
    x, y = cytape.constant([1.0, 2.0]), cytape.constant([1.0, 2.0, 3.0])
    with ways.watching(x, y, persistent=True) as tape:
        z = x * x
        count = x.astype(np.int64)
    assert tape.jacobian(z, y) is None
    assert tape.jacobian(z, y, unconnected_gradients="zero").numpy().tolist() == [[0.0] * 3] * 2
    assert tape.jacobian(count, x) is None
    with pytest.raises(ValueError, match="'nonsense'"):
        tape.jacobian(z, y, unconnected_gradients="nonsense")


def _batch_jacobian(x):
    tape, y = ways.taped(lambda x: x**2 * np.sum(x, axis=1, keepdims=True), x)
    return tape.batch_jacobian(y, x)


def _jacobian(x):
    tape, y = ways.taped(lambda x: x[0] ** 2 * x[1:3], x)
    return tape.jacobian(y, x)


def test_jacobians_of_arguments_of_unknown_extents():
    x = np.arange(6.0).reshape(3, 2)
    traced = cytape.function(_batch_jacobian, input_signature=[cytape.Spec.of((None, 2), float)])
    np.testing.assert_allclose(traced(x), _batch_jacobian(cytape.constant(x)))
    with pytest.raises(SymbolicTensorError, match="known but for the first extent"):
        cytape.function(_batch_jacobian, input_signature=[cytape.Spec.of((None, None), float)])(x)
    traced = cytape.function(_jacobian, input_signature=[cytape.Spec.of((3, None), float)])
    with pytest.raises(SymbolicTensorError, match=r"cytape\.jacfwd"):
        traced(x)


def test_jacobians_of_known_extents_in_arguments_of_unknown_ones():
    def jacobian(x):
        tape, y = ways.taped(lambda x: np.stack([np.sum(x**2), np.sum(x) ** 2]), x)
        return tape.jacobian(y, x)

    x = np.arange(6.0).reshape(3, 2)
    traced = cytape.function(jacobian, input_signature=[cytape.Spec.of((None, None), float)])
    np.testing.assert_allclose(traced(x), jacobian(cytape.constant(x)))


A, B = np.random.default_rng(1).normal(size=(2, 6, 6))
MANY_ROWS = {
    "product": lambda x: np.tanh(A @ np.exp(-(B @ x) ** 2)),
    "indices": lambda x: x[[0, 2, 2, 5, 1, 0]] * np.take(x, [1, 1, 0, 3, 3, 2]),
    "norms": lambda x: np.outer(x, x)[:3] / np.linalg.norm(x) + np.sort(x),
    "no dependence": lambda x: np.concatenate([x, np.ones(3)]),
    "two results": lambda x: {"y": np.cumsum(x), "z": (x * np.sum(x), np.floor(x))},
    "custom gradient": lambda x: halved(x) * x,
    "branch": lambda x: cytape.cond(x[0] > 0, lambda: x * x, lambda: np.sin(x) * x[1]),
    "loop": lambda x: cytape.while_loop(
        lambda i, y: i < 3, lambda i, y: (i + 1, np.sin(y) * x), (0, x))[1],
}


@cytape.custom_gradient
def halved(x):
    return x * 1.0, lambda g: g / 2


@each("name", list(MANY_ROWS))
def test_rows_in_graphs_are_those_outside(name):
    f, x = MANY_ROWS[name], np.random.default_rng(0).normal(size=6)
    leaves = cytape.tensor.nest.flatten
    for transform in (cytape.jacrev, lambda f: cytape.jacrev(cytape.jacrev(f)),
                      lambda f: cytape.jacfwd(cytape.jacrev(f))):
        expected, found = transform(f)(x), cytape.function(transform(f))(x)
        for a, b in zip(leaves(found), leaves(expected), strict=True):
            np.testing.assert_allclose(a, b, atol=1e-12)

    def of_tape(x):
        tape, y = ways.taped(lambda x: np.tanh(x) * np.sum(x), x)
        return tape.jacobian(y, x)

    tensor = cytape.constant(x)
    np.testing.assert_allclose(
        cytape.function(of_tape)(tensor).numpy(), of_tape(tensor).numpy(), atol=1e-14)


def test_many_rows_take_no_more_nodes_than_few():
    def nodes(n):
        traced = cytape.function(cytape.jacrev(lambda x: np.exp(np.sin(x)) * np.sum(x)))
        return len(traced.get_concrete_function(np.ones(n)).graph.ops)

    assert nodes(100) == nodes(10) < 40


def test_rows_are_taken_in_parts_where_they_are_many(monkeypatch):
    x = np.arange(1.0, 8.0)
    monkeypatch.setattr("cytape.autodiff.jacobian_rows.MOST_AT_A_TIME", 35)  # 5 of the 7 rows
    found = cytape.function(cytape.jacrev(lambda x: x**2 * np.sum(x)))(x)
    np.testing.assert_allclose(found, np.diag(2 * x * x.sum()) + (x**2)[:, None])


@each("most", [60, 1 << 20])  # 5 of the 6 rows, or all
def test_rows_of_batches_in_graphs_are_those_outside(most, monkeypatch):
    monkeypatch.setattr("cytape.autodiff.jacobian_rows.MOST_AT_A_TIME", most)
    batch = np.arange(12.0).reshape(2, 6)
    transformed = cytape.batch_jacobian(lambda x: x * x[:, :1])
    np.testing.assert_allclose(cytape.function(transformed)(batch), transformed(batch))


def test_rows_of_what_is_not_for_batches_are_computed_one_by_one():
    v = cytape.Variable(0.0)

    @cytape.custom_gradient
    def counted(x):
        def back(g):
            v.assign_add(1.0)
            return g * 3

        return x * 1.0, back

    np.testing.assert_allclose(cytape.function(cytape.jacrev(counted))(np.ones(6)), 3 * np.eye(6))
