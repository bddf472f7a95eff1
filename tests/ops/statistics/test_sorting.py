"""Sorted elements and each of them once: ties, NaN and errors."""

import numpy as np

import cytape
from cytape.ops.statistics import sorting
from tests import ways
from tests.cases import each

X = np.array([3.0, 1.0, 1.0, 2.0])
WEIGHTS = np.array([1.0, 10.0, 100.0, 1000.0])


def test_of_equal_elements_each_has_one_place():
    f = cytape.grad(lambda x: np.sum(np.sort(x, stable=True) * WEIGHTS))
    np.testing.assert_array_equal(f(X), [1000, 1, 10, 100])
    f = cytape.grad(lambda x: np.sum(np.partition(x, 1) * WEIGHTS))
    np.testing.assert_array_equal(np.sort(f(X)), WEIGHTS)


def test_many_elements_are_in_two_parts_and_keep_their_gradients():
    x, k = np.random.default_rng(0).permutation(np.arange(3000.0)), 1700
    weights = np.arange(3000.0)
    found = cytape.grad(lambda x: np.sum(np.partition(x, k) * weights))(x)
    values = np.empty(3000)
    values[found.astype(int)] = x
    np.testing.assert_array_equal(np.partition(cytape.constant(x), k), values)
    assert values[k] == k
    assert values[:k].max() < k < values[k + 1:].min()


def test_of_equal_elements_the_first_stands_for_all():
    f = cytape.grad(lambda x: np.sum(np.unique(x) * WEIGHTS[:3]))
    np.testing.assert_array_equal(f(X), [100, 1, 0, 10])


def test_positions_come_along():
    values, index, inverse, counts = np.unique(cytape.constant(X), True, True, True)
    for found, expected in zip((values, index, inverse, counts), np.unique(X, True, True, True),
                               strict=True):
        np.testing.assert_array_equal(found, expected)
    for name in ("unique_all", "unique_counts", "unique_inverse"):
        found, expected = (getattr(np, name)(x) for x in (cytape.constant(X), X))
        assert found._fields == expected._fields
        for ours, theirs in zip(found, expected, strict=True):
            np.testing.assert_array_equal(ours, theirs)


def with_holes_and_ties(n, dtype):
    x = np.random.default_rng(0).integers(-9, 9, n).astype(dtype)
    x[::7] = np.nan
    x[1::5] = -0.0
    return x


@each(dtype=["float64", "float32", "float16", "complex128", "int64"], equal_nan=[True, False])
@each("n", [0, 1, 2, 500])
def test_the_first_of_equal_elements_are_numpys(dtype, equal_nan, n):
    x = with_holes_and_ties(n, "float64" if dtype == "int64" else dtype)
    x = np.nan_to_num(x).astype(dtype) if dtype == "int64" else x
    np.testing.assert_array_equal(
        sorting._first_places(x, equal_nan), np.unique(x, True, equal_nan=equal_nan)[1])


@each("call", [np.sort, np.unique, np.sort_complex, lambda x: np.partition(x, 3)])
def test_gradients_that_are_alike_need_no_order(call, monkeypatch):
    monkeypatch.setattr(np, "argsort", None)
    x = np.random.default_rng(0).normal(size=50)
    for weights in (1.0, np.full(50, 3.0)):
        gradient = cytape.grad(lambda x, w=weights: np.sum(np.real(call(x)) * w))
        for transformed in (gradient, cytape.function(gradient)):
            np.testing.assert_array_equal(transformed(x), np.broadcast_to(weights, 50))


@each("call", [np.sort, np.sort_complex, lambda x: np.partition(x, 1), np.unique])
def test_gradients_that_are_alike_in_lines_are_not_so_in_all_of_them(call):
    x, weights = np.array([5.0, 1.0, 2.0, 3.0]), np.array([2.0, 2.0, 2.0, 7.0])
    found = cytape.grad(lambda x: np.sum(np.real(call(x)) * weights))(x)
    np.testing.assert_array_equal(np.sort(found), [2, 2, 2, 7])
    assert found[np.argmax(x)] == 7


def test_derivatives_of_gradients_that_are_alike():
    """A gradient has a derivative with respect to its seed even if the seed's numbers are equal."""
    x = cytape.constant([3.0, 1.0, 2.0])
    seed = cytape.constant(np.broadcast_to(1.0, 3))
    with ways.watching(seed) as outer:
        g = ways.gradient(np.sort, x, output_gradients=seed)
        value = np.sum(g * np.array([1.0, 10.0, 100.0]))
    np.testing.assert_array_equal(outer.gradient(value, seed), [10, 100, 1])
