"""Powers, chains and the functions that `numpy` has, too: what the op table does not state."""

import itertools

import numpy as np
import pytest

import cytape
from cytape.ops.submodules import linear_algebra
from cytape.testing import check_grads
from tests import ways
from tests.cases import each
from tests.ops.submodules import linalg_peaks
from tests.tables import table

A = np.array([[2.0, 1.0, 0.0], [0.5, 3.0, 1.0], [1.0, -1.0, 2.0]])


def test_every_function_of_arrays_is_there():
    assert set(linear_algebra.__all__) == set(np.linalg.__all__) - {"LinAlgError"}


@each("lengths", list(itertools.permutations([1, 2, 5, 7]))[::3])
def test_a_chain_is_multiplied_as_numpy_does(lengths):
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=pair) for pair in itertools.pairwise((3, *lengths, 4))]
    found = np.linalg.multi_dot([cytape.constant(arrays[0]), *arrays[1:]])
    np.testing.assert_allclose(found, np.linalg.multi_dot(arrays), rtol=1e-12)


def cost(lengths, splits, i, j):
    if i == j:
        return 0
    k = splits[i, j]
    return (cost(lengths, splits, i, k) + cost(lengths, splits, k + 1, j)
            + lengths[i] * lengths[k + 1] * lengths[j + 1])


def orders(i, j):
    if i == j:
        return [{}]
    return [{**left, **right, (i, j): k} for k in range(i, j)
            for left in orders(i, k) for right in orders(k + 1, j)]


@each("seed", range(5))
def test_no_order_is_cheaper(seed):
    lengths = np.random.default_rng(seed).integers(1, 20, 6).tolist()
    cheapest = min(cost(lengths, splits, 0, 4) for splits in orders(0, 4))
    assert cost(lengths, linear_algebra._cheapest_split(*lengths), 0, 4) == cheapest


def test_the_cheapest_order_is_taken(monkeypatch):
    made, dot = [], linear_algebra.products.dot
    monkeypatch.setattr(linear_algebra.products, "dot", lambda a, b: (
        made.append((a.shape, b.shape)), dot(a, b))[1])
    arrays = [np.ones(shape) for shape in [(9, 9), (9, 9), (9, 1), (1, 9)]]
    np.linalg.multi_dot([cytape.constant(arrays[0]), *arrays[1:]])
    assert made == [((9, 9), (9, 1)), ((9, 9), (9, 1)), ((9, 1), (1, 9))]


@each(shapes=[
    [(3,), (3, 4), (4,)], [(3,), (3, 4), (4, 2)], [(2, 3), (3, 4), (4,)],
    [(2, 3), (3, 2), (2, 4), (4,)], [(2, 5), (5, 1), (1, 6), (6, 2)]], known=[True, False])
def test_chains_in_graphs(shapes, known):
    arrays = [np.random.default_rng(0).normal(size=shape) for shape in shapes]
    signature = [cytape.Spec.of(s if known else (None,) * len(s), float) for s in shapes]
    chain = cytape.function(lambda *xs: np.linalg.multi_dot(xs), input_signature=signature)
    expected = np.linalg.multi_dot(arrays)
    np.testing.assert_allclose(chain(*arrays), expected, rtol=1e-12)
    check_grads(lambda *xs: np.linalg.multi_dot(xs), arrays, order=1)


@each(n=[0, 1, -1, 3, -4], dtype=["float32", "int64", "complex128"])
def test_powers_have_numpys_dtypes(n, dtype):
    a = np.array([[1, 1], [0, 1]], dtype)
    found, expected = np.linalg.matrix_power(cytape.constant(a), n), np.linalg.matrix_power(a, n)
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found, expected)


def test_a_power_of_zero_is_not_connected():
    x = cytape.constant(A)
    assert ways.gradient(lambda x: np.linalg.matrix_power(x, 0), x) is None


def test_an_array_and_a_tensor_of_another_number_of_axes():
    a, b = np.ones((2, 3)), np.arange(12.0).reshape(2, 2, 3)
    gradient = cytape.grad(lambda a: np.sum(np.linalg.cross(a, b)))(a)
    assert gradient.shape == a.shape
    np.testing.assert_allclose(np.sum(gradient * a), np.sum(np.cross(a, b)))


def test_options_of_plain_arrays():
    x = np.ones((2, 3))
    assert linear_algebra.trace(x, dtype=np.float32).dtype == np.float32
    np.testing.assert_array_equal(linear_algebra.vecdot(x, x, axis=0), [2, 2, 2])


@pytest.mark.skipif(not linalg_peaks.MEASURABLE, reason="needs Linux's counters of memory")
@pytest.mark.parametrize("of", table(["float 8"], ["float 1", "complex 1"]))
def test_derivatives_take_memory_in_proportion_to_operands_and_results(of):
    dtype, step = of.split()
    measured = linalg_peaks.run(dtype, int(step))
    assert len(measured) == 5 * len(linalg_peaks.FUNCTIONS[::int(step)])
    assert max(measured)[0] <= 4, max(measured)
