"""Convolution and correlation: what the op table does not state."""

import numpy as np
import pytest

import cytape
from tests.cases import each


@each("mode", [0, 1, 2])
def test_modes_may_be_numbers(mode):
    x, v = np.array([1.0, 2.0, 4.0, 7.0]), np.array([1.0, -1.0])
    np.testing.assert_array_equal(np.convolve(cytape.constant(x), v, mode), np.convolve(x, v, mode))


def test_lengths_that_a_run_tells():
    f = cytape.function(
        cytape.grad(lambda x, v: np.sum(np.convolve(x, v) ** 2), argnums=(0, 1)),
        input_signature=[cytape.Spec.of((None,), float)] * 2)
    x, v = np.array([1.0, 2.0, 4.0]), np.array([1.0, -1.0])
    y = np.convolve(x, v)
    found = f(x, v)
    np.testing.assert_allclose(found[0], 2 * np.correlate(y, v, "valid"))
    np.testing.assert_allclose(found[1], 2 * np.correlate(y, x, "valid"))
    with pytest.raises(cytape.errors.SymbolicTensorError, match="lengths of both"):
        cytape.function(lambda x: np.correlate(x, v, "same"),
                        input_signature=[cytape.Spec.of((None,), float)])(x)


@each("n, m", [(5000, 3000), (3000, 5000), (2049, 2049)])
@each("dtype, tolerance", [
    ("float64", 1e-14), ("float32", 1e-5), ("float16", 2e-3), ("complex128", 1e-14), ("int64", 0)])
def test_long_overlaps_of_long_sequences(n, m, dtype, tolerance):
    rng = np.random.default_rng(0)
    wide = np.result_type(dtype, np.float64)
    a, v = ((rng.normal(scale=4.0, size=size) + (1j * rng.normal(size=size) if wide == "D" else 0))
            .astype(dtype) for size in (n, m))
    expected = np.correlate(a.astype(wide), v.astype(wide))
    found = np.correlate(cytape.constant(a), cytape.constant(v)).numpy()
    assert found.dtype == dtype
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance * np.abs(expected).max())


@each("place", [lambda f: f, cytape.function])
def test_gradient_of_a_short_operand_beside_a_long_one(place):
    x, v, weights = (np.random.default_rng(0).normal(size=n) for n in (5000, 3, 5002))
    found = place(cytape.grad(lambda v: np.sum(np.convolve(x, v) * weights)))(v)
    np.testing.assert_allclose(found, [weights[i : i + 5000] @ x for i in range(3)], rtol=1e-12)


def test_long_overlaps_of_halves_are_summed_in_single_precision():
    a = np.repeat(np.array([100, -100], np.float16), 2048)
    v = np.ones(4096, np.float16)
    assert np.correlate(cytape.constant(a), v).numpy() == np.correlate(a, v) == 0
    found = cytape.grad(lambda w: np.sum(np.convolve(a, w)))(np.ones(1, np.float16))
    assert found.dtype == np.float16 and found == 0
    # The sum of the first part, 61,440, is one of which halves are 32 apart.
    b = np.r_[np.full(2048, 30), np.ones(1000), np.full(2048, -30)].astype(np.float16)
    ones = np.ones(b.size, np.float16)
    assert np.correlate(cytape.constant(b), ones).numpy() == np.correlate(b, ones) == 1000


def test_long_overlaps_warn_no_more_than_numpys():
    b = np.ones(5000)
    b[10], b[4000] = np.inf, -np.inf
    v = np.ones(4990)
    np.testing.assert_array_equal(np.correlate(cytape.constant(b), v), np.correlate(b, v))
    h = np.full(5000, 4, np.float16)
    np.testing.assert_array_equal(np.correlate(cytape.constant(h), h), np.correlate(h, h))
