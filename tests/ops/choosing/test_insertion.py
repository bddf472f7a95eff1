"""Arrays with elements put in, left out or repeated, and blocks: errors and odd cases."""

import numpy as np
import pytest

import cytape
from cytape.errors import SymbolicTensorError
from tests.cases import each

X = np.array([0.0, 1.0, 0.0, 2.0, 0.0, 0.0])


def test_values_alone_may_be_recorded():
    gradient = cytape.grad(lambda v: np.sum(np.insert(X, [1, 4], v) * np.arange(8)))(np.ones(2))
    np.testing.assert_array_equal(gradient, [1, 5])
    gradient = cytape.grad(lambda v: np.sum(np.block([[X], [v]])[1]))(np.ones(6))
    np.testing.assert_array_equal(gradient, np.ones(6))


def test_zeros_of_a_graph_are_not_known():
    with pytest.raises(SymbolicTensorError, match="trim_zeros: which elements"):
        cytape.function(np.trim_zeros)(X)


@each("obj", [[1], [-1], slice(1, 2), np.array([False, True]), 1])
def test_all_values_are_put_in_at_one_place(obj):
    x = np.arange(6.0).reshape(2, 3)
    values = np.array([[1.0, 2.0], [3.0, 4.0]])

    def insert(x, values):
        return (np.insert(x, obj, values[0]), np.insert(x, obj, values, axis=1),
                np.insert(x, obj, values[:, :1], axis=1), np.insert(x, obj, 7.0, axis=0))

    found = insert(cytape.constant(x), cytape.constant(values))
    for ours, theirs in zip(found, insert(x, values), strict=True):
        np.testing.assert_array_equal(ours, theirs)


@each("shape", [(None,), None])
def test_of_an_unknown_length_it_is_an_error_whose_advice_helps(shape):
    spec = cytape.Spec.of(shape, float)
    with pytest.raises(SymbolicTensorError, match="placeholder a shape, .* reshape the tensor"):
        cytape.function(lambda x: np.insert(x, 1, 5.0, axis=0), input_signature=[spec])(X)
    found = cytape.function(
        lambda x: np.insert(np.reshape(x, (6,)), 1, 5.0, axis=0), input_signature=[spec])(X)
    np.testing.assert_array_equal(found, np.insert(X, 1, 5.0))


@each("name, call", [
    ("delete", lambda x, axis: np.delete(x, 0, axis)),
    ("insert", lambda x, axis: np.insert(x, 0, 5.0, axis))])
@each("axis, shape, named", [
    (0, (None, 3), 0), (1, (2, None), 1), (-2, (None, None), 0), (None, (2, None), 0)])
def test_the_error_names_the_axis_of_unknown_length(name, call, axis, shape, named):
    traced = cytape.function(
        lambda x: call(x, axis), input_signature=[cytape.Spec.of(shape, float)])
    with pytest.raises(SymbolicTensorError, match=f"^{name}: the length of axis {named} is not"):
        traced(X.reshape(2, 3))


@each(call=[np.delete, lambda x, obj: np.insert(x, obj, 1.0)], obj=[1, [1, 2], X > 0])
def test_which_places_are_meant_must_be_known(call, obj):
    with pytest.raises(SymbolicTensorError, match="was asked for its value"):
        cytape.function(call)(X, np.asarray(obj))


@each("dtype", ["float64", "int64", "complex64", "bool"])
@each("before, after", [(0, 0), (63, 64), (64, 65), (1000, 1), (0, 700)])
def test_zeros_at_far_ends_are_trimmed(dtype, before, after):
    middle = np.array([1, 0, 0, 1], dtype)
    x = np.concatenate([np.zeros(before, dtype), middle, np.zeros(after, dtype)])
    for trim in ("fb", "F", "b"):
        np.testing.assert_array_equal(
            np.trim_zeros(cytape.constant(x), trim), np.trim_zeros(x, trim), strict=True)
