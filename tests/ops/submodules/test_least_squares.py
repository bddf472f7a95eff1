"""The pseudoinverse and least squares: what the op table does not state."""

import numpy as np
import pytest

import cytape
from cytape.testing import check_grads
from tests.cases import each

A = np.array([[2.0, 1.0], [0.5, 3.0], [1.0, -1.0]])


def test_both_names_of_the_cutoff():
    with pytest.raises(ValueError, match="can't be both set"):
        np.linalg.pinv(cytape.constant(A), rcond=0.1, rtol=0.1)


def test_equal_singular_values_do_no_harm():
    for x in (np.eye(3), np.eye(3, 2), np.diag([2.0, 2.0, 1.0])):
        check_grads(np.linalg.pinv, [x])
        check_grads(lambda x: np.linalg.pinv(x, rcond=0.6), [x], order=1)


def test_a_cutoff_is_differentiated_as_the_step_that_it_is():
    u, _ = np.linalg.qr(np.arange(9.0).reshape(3, 3) + np.eye(3))
    v, _ = np.linalg.qr(np.arange(9.0).reshape(3, 3)[::-1] + np.eye(3))
    x = u @ np.diag([3.0, 2.0, 1.5]) @ v.T
    check_grads(lambda x: np.linalg.pinv(x, rcond=0.6), [x], order=1)
    check_grads(lambda x: np.linalg.pinv(x + x.T, 0.6, True), [np.diag([3.0, -2.0, 1.0])], order=1)


@each("a", [A, A.T, A + 0.5])
@each("b", [np.array([1.0, -2.0, 0.5]), np.arange(6.0).reshape(3, 2)])
def test_least_squares_with_a_cutoff_that_cuts(a, b):
    b = b[: len(a)]
    check_grads(lambda a, b: np.linalg.lstsq(a, b, rcond=0.9)[0], [a, b], order=1)
    solve = cytape.function(lambda a, b: np.linalg.lstsq(a, b, rcond=0.9))
    for found, expected in zip(solve(a, b), np.linalg.lstsq(a, b, rcond=0.9), strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-14)
    check_grads(lambda a: solve(a, b)[0], [a], order=1)


def test_a_cutoff_that_lapack_replaces_cuts_nothing_in_a_trace():
    b = np.arange(3.0)
    solve = cytape.function(lambda a: np.linalg.lstsq(a, b, rcond=1.0)[0])
    np.testing.assert_allclose(solve(A), np.linalg.lstsq(A, b, rcond=1.0)[0], atol=1e-14)
    check_grads(solve, [A], order=1)


def test_a_stack_of_cutoffs():
    x = np.stack([np.diag([3.0, 1.0])] * 2)
    cutoffs = np.array([0.1, 0.5])
    found = np.linalg.pinv(cytape.constant(x), cutoffs)
    np.testing.assert_array_equal(found, np.linalg.pinv(x, cutoffs))
    gradient = cytape.grad(lambda x: np.sum(np.linalg.pinv(x, cutoffs)[:, 1, 1]))(x)
    np.testing.assert_allclose(gradient[:, 1, 1], [-1.0, 0.0], atol=1e-15)


def test_one_matrix_and_many_cutoffs():
    found = cytape.grad(lambda x: np.sum(np.linalg.pinv(x, np.array([0.1, 0.5]))[:, 1, 1]))(
        np.diag([3.0, 1.0]))
    np.testing.assert_allclose(found, [[0, 0], [0, -1]], atol=1e-15)


def test_a_matrix_of_lower_rank_moves_among_those():
    """The direction keeps the rank, so the numbers are those of central differences."""
    u, v = np.random.default_rng(0).normal(size=(2, 4, 2))
    check_grads(lambda u, v: np.linalg.pinv(u @ v.T, rtol=1e-10), [u, v])
    check_grads(
        lambda u, v: np.linalg.lstsq(u @ v.T, np.arange(4.0), rcond=1e-10)[0], [u, v], order=1)


def test_there_are_no_sums_of_squares_where_the_rank_is_not_full():
    for a in (A, np.ones((3, 2)), A.T[:, :2], np.ones((3, 3))):
        b = np.arange(float(len(a)))
        found = np.linalg.lstsq(cytape.constant(a), b)
        for x, expected in zip(found, np.linalg.lstsq(a, b), strict=True):
            assert x.dtype == np.asarray(expected).dtype
            np.testing.assert_allclose(x, expected, atol=1e-12)
        gradient = cytape.grad(lambda a, b=b: np.sum(np.linalg.lstsq(a, b)[1]) + 0 * np.sum(a))(a)
        assert gradient.any() == (a is A)


@each(known=[True, False], b=[np.arange(3.0), np.arange(6.0).reshape(3, 2)])
def test_in_a_function(b, known):
    def residuals(a, b):
        x, squares, rank, _ = np.linalg.lstsq(a, b)
        return np.sum(x) + np.sum(squares) * rank

    def both(a, b):
        return cytape.grad(residuals)(a, b), cytape.jvp(residuals, (a, b), (a + 1, b - 1))[1]

    shapes = [x.shape if known else (None,) * x.ndim for x in (A, b)]
    run = cytape.function(both, input_signature=[cytape.Spec.of(s, float) for s in shapes])
    for found, expected in zip(run(A, b), both(A, b), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-12)
