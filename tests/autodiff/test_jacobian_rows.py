"""Jacobians row by row: their shapes, rows that are sparse or missing, unknown extents."""

import numpy as np
import pytest

import cytape
from cytape.errors import SymbolicTensorError


def test_D_2_22_jacobian_has_the_shapes_of_target_and_source():
    x = cytape.constant(np.arange(6.0).reshape(2, 3))
    w = cytape.constant(np.arange(12.0).reshape(3, 4))
    with cytape.GradientTape(persistent=True) as tape:
        tape.watch([x, w])
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
    with cytape.GradientTape() as tape:
        tape.watch(table)
        y = cytape.gather(table, [2, 0, 2])
    jacobian = tape.jacobian(y, table)
    expected = np.zeros((3, 2, 3, 2))
    for row, index in enumerate([2, 0, 2]):
        expected[row, :, index, :] = np.eye(2)
    np.testing.assert_array_equal(jacobian.numpy(), expected)


def test_D_2_22_jacobian_of_unconnected_sources():
    x, y = cytape.constant([1.0, 2.0]), cytape.constant([1.0, 2.0, 3.0])
    with cytape.GradientTape(persistent=True) as tape:
        tape.watch([x, y])
        z = x * x
        count = x.astype(np.int64)
    assert tape.jacobian(z, y) is None
    assert tape.jacobian(z, y, unconnected_gradients="zero").numpy().tolist() == [[0.0] * 3] * 2
    assert tape.jacobian(count, x) is None
    with pytest.raises(ValueError, match="'nonsense'"):
        tape.jacobian(z, y, unconnected_gradients="nonsense")


def _batch_jacobian(x):
    with cytape.GradientTape() as tape:
        tape.watch(x)
        y = x**2 * np.sum(x, axis=1, keepdims=True)
    return tape.batch_jacobian(y, x)


def _jacobian(x):
    with cytape.GradientTape() as tape:
        tape.watch(x)
        y = x[0] ** 2 * x[1:3]
    return tape.jacobian(y, x)


def test_jacobians_of_arguments_of_unknown_extents():
    x = np.arange(6.0).reshape(3, 2)
    traced = cytape.function(
        _batch_jacobian, input_signature=[cytape.Spec.of((None, 2), float)])
    np.testing.assert_allclose(traced(x), _batch_jacobian(cytape.constant(x)))
    with pytest.raises(SymbolicTensorError, match="known but for the first extent"):
        cytape.function(_batch_jacobian, input_signature=[cytape.Spec.of((None, None), float)])(x)
    traced = cytape.function(_jacobian, input_signature=[cytape.Spec.of((3, None), float)])
    with pytest.raises(SymbolicTensorError, match=r"cytape\.jacfwd"):
        traced(x)


def test_jacobians_of_known_extents_in_arguments_of_unknown_ones():
    def jacobian(x):
        with cytape.GradientTape() as tape:
            tape.watch(x)
            y = np.stack([np.sum(x**2), np.sum(x) ** 2])
        return tape.jacobian(y, x)

    x = np.arange(6.0).reshape(3, 2)
    traced = cytape.function(jacobian, input_signature=[cytape.Spec.of((None, None), float)])
    np.testing.assert_allclose(traced(x), jacobian(cytape.constant(x)))
