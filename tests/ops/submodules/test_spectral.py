"""Eigenvalues and singular values: what the op table does not state."""

import numpy as np
import pytest

import cytape
from cytape.testing import check_grads
from tests import ways
from tests.cases import each

H = np.array([[4.0, 1.0 + 1.0j], [1.0 - 1.0j, 3.0]])
EQUAL = np.diag([1.0, 1.0, 4.0])


# -- Hermitian matrices ----------------------------------------------------------------------------


@each("triangle", ["L", "U", "l", "u"])
def test_one_triangle_is_read_and_the_gradient_is_hermitian(triangle):
    unread = H + np.array([[0, 9], [0, 0]] if triangle in "lL" else [[0, 0], [9, 0]])
    x = cytape.constant(unread)
    for part in (0, 1):
        with ways.watching(x) as tape:
            result = np.linalg.eigh(x, triangle)
            y = np.sum(np.abs(result[part]) ** 4)
        for found, expected in zip(result, np.linalg.eigh(unread, triangle), strict=True):
            np.testing.assert_array_equal(found, expected)
        gradient = tape.gradient(y, x).numpy()
        np.testing.assert_allclose(gradient, gradient.conj().T, rtol=1e-13)
        assert np.abs(gradient).max() > 0.01


def test_of_a_tangent_the_hermitian_part_counts():
    t = np.array([[1.0, 5.0], [3.0, 2.0j]])
    part = (t + t.conj().T) / 2
    for i in (0, 1):
        found = [cytape.jvp(lambda a, i=i: np.linalg.eigh(a)[i], (H,), (x,))[1] for x in (t, part)]
        np.testing.assert_allclose(*found, rtol=1e-13)


# -- equal values ----------------------------------------------------------------------------------


def sums_over_eigenspaces(a):
    """Return what no basis of an eigenspace decides: its projector, and the sum of its values."""
    w, v = np.linalg.eigh(a)
    first = v[:, :2]
    return first @ np.swapaxes(first, 0, 1), np.sum(w[:2]), w[2]


def test_values_independent_of_the_basis_of_an_eigenspace_have_a_derivative():
    turned, _ = np.linalg.qr(np.arange(9.0).reshape(3, 3) ** 2 + np.eye(3))
    for x in (EQUAL, turned @ EQUAL @ turned.T):
        check_grads(lambda a: sums_over_eigenspaces((a + np.swapaxes(a, 0, 1)) / 2), [x], order=1)


def test_the_sum_of_all_singular_values_has_its_derivative_where_some_are_equal():
    x = np.diag([2.0, 2.0, 1.0])
    np.testing.assert_allclose(cytape.grad(lambda a: np.sum(np.linalg.svdvals(a)))(x), np.eye(3),
                               atol=1e-15)


@each("function", [
    lambda a: np.linalg.eigh(a)[1], lambda a: np.linalg.svd(a)[0], lambda a: np.linalg.svd(a)[2],
    lambda a: np.linalg.eig(a)[1], lambda a: np.linalg.svd(a, False)[2]])
def test_vectors_of_one_value_do_not_turn_into_each_other(function):
    """So derivatives are finite, in both modes and to second order."""
    x, t = np.zeros((3, 3)), np.arange(9.0).reshape(3, 3)
    for point in (np.eye(3), x, EQUAL):
        with np.errstate(all="raise"):
            _, tangent = cytape.jvp(function, (point,), (t,))
            gradient = cytape.grad(lambda a: np.sum(np.real(function(a)) * t))(point)
            second = cytape.hessian(lambda a: np.sum(np.real(function(a)) * t))(point)
        for found in (tangent, gradient, second):
            assert np.isfinite(found).all()
        if point is x or point is not EQUAL and "svd" not in function.__code__.co_names:
            np.testing.assert_array_equal(tangent, 0)
            np.testing.assert_array_equal(gradient, 0)


@each(shape=[(3, 3), (4, 3), (2, 3)], dtype=[float, complex])
@each("values", [[1.0, 1.0, 1.0], [2.0, 2.0, 1.0]])
def test_the_unitary_factor_has_its_first_derivative_where_singular_values_are_equal(
        shape, dtype, values):
    """It is of the polar decomposition, and no choice of vectors decides it."""
    rng = np.random.default_rng(0)

    def unitary(a):
        u, _, vh = np.linalg.svd(a, full_matrices=False)
        return u @ vh

    x = rng.normal(size=shape) + (1j * rng.normal(size=shape) if dtype is complex else 0)
    u, _, vh = np.linalg.svd(x, full_matrices=False)
    check_grads(unitary, [u * values[:min(shape)] @ vh], order=1)


def test_a_singular_value_of_zero_has_the_derivative_zero():
    x = np.diag([2.0, 0.0])
    np.testing.assert_array_equal(
        cytape.grad(lambda a: np.sum(np.linalg.svdvals(a)))(x), np.diag([1.0, 0.0]))
    _, tangent = cytape.jvp(np.linalg.svdvals, (x,), (np.ones((2, 2)),))
    np.testing.assert_array_equal(tangent, [1.0, 0.0])


# -- other square matrices -------------------------------------------------------------------------


@each("function", [np.linalg.eig, lambda a: (np.linalg.eigvals(a),)])
def test_real_eigenvalues_of_a_real_matrix_are_real_but_in_graphs(function):
    x = np.array([[2.0, 1.0], [0.5, 5.0]])
    for found, in_graph in zip(
        function(cytape.constant(x)), cytape.function(function)(cytape.constant(x)), strict=True
    ):
        assert (found.dtype, in_graph.dtype) == (np.float64, np.complex128)
        np.testing.assert_array_equal(found, in_graph)


def test_the_gradient_is_the_same_in_a_graph():
    x = np.array([[2.0, 1.0], [0.5, 5.0]])

    def f(a):
        w, v = np.linalg.eig(a)
        return np.sum(np.real(w) ** 2) + np.sum(np.abs(v) ** 4)

    found = cytape.function(cytape.grad(f))(x)
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, cytape.grad(f)(x), rtol=1e-13)
    check_grads(f, [x])


def test_vectors_keep_their_length():
    x = np.array([[2.0, 1.0, 0.1], [0.5, 5.0, 1.0], [0.2, 2.0, -1.0]])
    check_grads(lambda a: np.sum(np.abs(np.linalg.eig(a)[1]) ** 2, axis=0), [x])
    check_grads(lambda a: np.linalg.eig(a)[1], [x])  # real ones have no other phase than a sign


def test_eigenvectors_diagonalise():
    z = np.random.default_rng(3).normal(size=(4, 4)) + 1j * np.diag([1.0, 2.0, 3.0, 4.0])

    def rebuilt(a):
        w, v = np.linalg.eig(a)
        return np.linalg.solve(np.swapaxes(v, 0, 1), np.swapaxes(v * w, 0, 1))

    t = np.arange(16.0).reshape(4, 4) + 1j
    _, tangent = cytape.jvp(rebuilt, (z,), (t,))
    np.testing.assert_allclose(tangent, t.T, atol=1e-10)


# -- singular values -------------------------------------------------------------------------------


@each(shape=[(3, 5), (5, 3), (4, 4)], full=[False, True], is_complex=[False, True])
def test_factors_rebuild_the_matrix(shape, full, is_complex):
    rng = np.random.default_rng(1)
    x, t = rng.normal(size=(2, *shape)) + (1j * rng.normal(size=(2, *shape)) if is_complex else 0)
    k = min(shape)

    def rebuilt(a):
        u, s, vh = np.linalg.svd(a, full)
        return (u[:, :k] * s) @ vh[:k]

    np.testing.assert_allclose(cytape.jvp(rebuilt, (x,), (t,))[1], t, atol=1e-12)
    y = cytape.constant(x)
    gradient = ways.gradient(rebuilt, y, output_gradients=cytape.constant(t))
    np.testing.assert_allclose(gradient, t, atol=1e-12)


@each("compute_uv", [False, True])
def test_hermitian_matrices_may_have_negative_eigenvalues(compute_uv):
    x = np.array([[1.0, 2.0], [2.0, -3.0]])

    def f(a):
        found = np.linalg.svd(a, compute_uv=compute_uv, hermitian=True)
        return found if compute_uv else (found,)

    for found, expected in zip(f(cytape.constant(x)), f(x), strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-14)
    check_grads(lambda a: list(f((a + np.swapaxes(a, 0, 1)) / 2)), [x])


def test_results_keep_numpys_names():
    for function in (np.linalg.eig, np.linalg.eigh, np.linalg.svd):
        found, expected = function(cytape.constant(H)), function(H)
        assert type(found) is type(expected)
        assert type(cytape.function(function)(H)) is type(expected)


def test_ranks_are_integers():
    for a, rank in ((np.eye(3), 3), (np.ones((2, 2)), 1), (np.zeros(3), 0), (np.ones(2), 1)):
        found = np.linalg.matrix_rank(cytape.constant(a))
        assert int(found) == np.linalg.matrix_rank(a) == rank
    found = cytape.function(lambda a: np.linalg.matrix_rank(a, rtol=0.5))(np.diag([1.0, 0.1]))
    assert int(found) == 1
    with pytest.raises(ValueError, match="can't be both set"):
        np.linalg.matrix_rank(cytape.constant(H), tol=0.1, rtol=0.1)
