"""Loops over small vectors and matrices: against NumPy, to the bit where that is promised."""

import numpy as np
import pytest

from cytape.ops.special_kernels.small_matrices import (
    SMALL,
    cholesky_gradient,
    cofactors,
    cross,
    inverse,
    lu_gradient,
)
from tests.cases import each

SIDES = [1, 2, 3, 4, 7, 31, SMALL]


def drawn(*shape, dtype=np.float64):
    return np.random.default_rng(sum(shape)).normal(size=shape).astype(dtype)


# -- cross products --------------------------------------------------------------------------------


@each(dtype=[np.float32, np.float64], place=[
    lambda x: x, lambda x: x[..., ::-1], lambda x: np.asfortranarray(x), lambda x: x[:1],
    lambda x: x[0, 0], lambda x: np.repeat(x, 2, -1)[..., ::2], lambda x: x[:0]])
def test_cross_products_are_numpys_to_the_bit(place, dtype):
    x, y = place(drawn(4, 5, 3, dtype=dtype)), drawn(1, 5, 3, dtype=dtype)
    for a, b in (x, y), (y, x):
        found, expected = cross(a, b), np.cross(a, b)
        assert found.dtype == dtype
        np.testing.assert_array_equal(found, expected, strict=True)


def test_cross_products_are_of_three_components():
    with pytest.raises(ValueError, match="mismatch"):
        cross(np.ones(2), np.ones(2))


# -- the gradient of Cholesky's factor -------------------------------------------------------------


def definite(*shape):
    a = drawn(*shape)
    return a @ a.mT + shape[-1] * np.eye(shape[-1])


@each(n=SIDES, stack=[(), (3,), (2, 2)])
def test_the_gradient_of_a_factor_is_the_transpose_of_its_tangent(n, stack):
    lower, g = np.linalg.cholesky(definite(*stack, n, n)), drawn(*stack, n, n)
    change = drawn(*stack, n, n + 1)[..., :n]
    change = change + change.mT
    inside = np.linalg.solve(lower, np.linalg.solve(lower, change).mT)
    tangent = lower @ (np.tril(inside) + np.tril(inside, -1)) / 2
    found = cholesky_gradient(lower, g)
    np.testing.assert_array_equal(found, found.mT)
    np.testing.assert_allclose(np.sum(found * change), np.sum(g * tangent), rtol=1e-11)


@each(n=SIDES, stack=[(), (3,), (2, 2)], dtype=["float32", "float64"])
def test_the_gradient_of_packed_factors_is_the_transpose_of_their_tangent(n, stack, dtype):
    packed, g = (drawn(*stack, n, n) / n + np.eye(n)).astype(dtype), drawn(*stack, n, n)
    change, eye = drawn(*stack, n, n + 1)[..., :n], np.eye(n)
    lower, upper = np.tril(packed.astype(float), -1) + eye, np.triu(packed.astype(float))
    inside = np.linalg.solve(lower, change) @ np.linalg.inv(upper)
    tangent = lower @ np.tril(inside, -1) + np.triu(inside) @ upper
    found = lu_gradient(packed, g.astype(dtype))
    assert found.dtype == dtype
    np.testing.assert_allclose(
        np.sum(found * change), np.sum(g * tangent),
        rtol=1e-11 if dtype == "float64" else 1e-4, atol=0 if dtype == "float64" else 1e-5)


def test_nothing_above_the_diagonals_is_read():
    lower, g = np.linalg.cholesky(definite(5, 5)), drawn(5, 5)
    above = np.triu(np.full((5, 5), np.nan), 1)
    np.testing.assert_array_equal(
        cholesky_gradient(lower + above, g + above), cholesky_gradient(lower, g))


def test_single_precision_is_rounded_at_the_end():
    lower, g = [x.astype(np.float32) for x in (np.linalg.cholesky(definite(9, 9)), drawn(9, 9))]
    found = cholesky_gradient(lower, g)
    assert found.dtype == np.float32
    expected = cholesky_gradient(lower.astype(float), g.astype(float))
    np.testing.assert_array_equal(found, expected.astype(np.float32))


@each("arguments", [
    (np.eye(2), np.eye(3)), (np.ones((2, 3)), np.ones((2, 3))), (np.ones(3), np.ones(3)),
    (np.eye(2), np.eye(2, dtype=np.float32)), (np.eye(2, dtype=complex), np.eye(2, dtype=complex)),
    (np.eye(2, dtype=int), np.eye(2, dtype=int))])
def test_other_factors_are_refused(arguments):
    with pytest.raises(TypeError, match="square matrices and gradients of one shape"):
        cholesky_gradient(*arguments)
    with pytest.raises(TypeError, match="square matrices and gradients of one shape"):
        lu_gradient(*arguments)


# -- inverses --------------------------------------------------------------------------------------


@each(n=SIDES, dtype=[np.float32, np.float64], stack=[(), (3,), (0,)])
def test_inverses(n, dtype, stack):
    a = (drawn(*stack, n, n) / n**0.5 + np.eye(n)).astype(dtype)
    kept = a.copy()
    found = inverse(a.mT)
    assert found.dtype == dtype
    tolerance = 1e-4 if dtype == np.float32 else 1e-11
    np.testing.assert_allclose(
        found @ a.mT, np.broadcast_to(np.eye(n), a.shape), rtol=0, atol=tolerance)
    np.testing.assert_array_equal(a, kept)
    np.testing.assert_allclose(
        cofactors(a, np.linalg.det(a)), np.linalg.det(a)[..., None, None] * found, tolerance,
        tolerance)


def test_rows_are_exchanged_for_the_largest_pivot():
    order = np.random.default_rng(0).permutation(9)
    np.testing.assert_array_equal(inverse(np.eye(9)[order]), np.eye(9)[order].T)
    tiny = np.array([[1e-20, 1.0], [1.0, 1.0]])
    np.testing.assert_allclose(inverse(tiny), np.linalg.inv(tiny), rtol=1e-15)


def test_no_rows_have_an_inverse_without_any():
    assert inverse(np.ones((2, 0, 0))).shape == (2, 0, 0)
    assert cofactors(np.ones((2, 0, 0)), np.ones(2)).shape == (2, 0, 0)


def test_a_singular_matrix_of_a_stack_leaves_all_to_others():
    stack = np.stack([np.eye(3), np.diag([1.0, 0.0, 2.0])])
    assert inverse(stack) is None
    assert cofactors(stack, np.linalg.det(stack)) is None


def test_nearly_singular_matrices_have_no_cofactors_here():
    a = np.arange(9.0).reshape(3, 3)
    assert cofactors(a, np.linalg.det(a) * 1.01) is None
    assert cofactors(np.eye(3), np.nan * np.ones(())) is None
    np.testing.assert_array_equal(cofactors(2 * np.eye(3), np.array(8.0)), 4 * np.eye(3))


def test_nan_stays_nan():
    a = np.eye(3)
    a[1, 1] = np.nan
    assert np.isnan(inverse(a)).any()


@each("a", [
    np.ones((2, 3)), np.ones(4), np.eye(3, dtype=int), np.eye(3, dtype=complex), np.eye(SMALL + 1)])
def test_other_matrices_are_refused(a):
    with pytest.raises(TypeError, match="square matrices of 64 rows at most"):
        inverse(a)
    with pytest.raises(TypeError, match="square matrices of 64 rows at most"):
        cofactors(a, np.ones(()))


def test_a_determinant_is_needed_per_matrix():
    with pytest.raises(TypeError, match="a determinant per matrix"):
        cofactors(np.ones((2, 3, 3)), np.ones(3))
