"""Triangular systems and Cholesky factors: arrays, transposed systems, errors."""

import numpy as np
import pytest

import cytape
from cytape.testing import check_grads
from tests import ways
from tests.cases import each

linalg = pytest.importorskip("scipy.linalg")
ours = pytest.importorskip("cytape.scipy.linalg")

A = np.array([[4.0, 1.0, 0.5], [1.0, 5.0, 0.2], [0.5, 0.2, 6.0]])
B = np.array([[1.0, 2.0], [3.0, -1.0], [0.5, 2.5]])
CALLS = {
    "solve_triangular": (A, B, 1), "solve_banded": ((1, 1), A, B), "sqrtm": (A,), "expm": (A,),
    "solve_sylvester": (A, A[:2, :2], B), "cholesky": (A, True), "cho_factor": (A,),
    "cho_solve": ((A, True), B), "inv": (A,), "eigh": (A,), "lu": (A,),
    "solve": (A, B), "lu_factor": (A,), "logm": (A,), "cosm": (A,), "signm": (A,),
    "fractional_matrix_power": (A, 0.3), "solveh_banded": (A + np.array([[9], [0], [0]]), B),
    "expm_frechet": (A, A), "lu_solve": ((A, [0, 1, 2]), B)}


@each("name", CALLS)
def test_arrays_are_left_to_scipy(name):
    args = CALLS[name]
    if name == "solveh_banded":
        args = (*args, False, False, True)
    found, expected = [getattr(where, name)(*args) for where in (ours, linalg)]
    if not isinstance(expected, tuple):
        found, expected = (found,), (expected,)
    for x, y in zip(found, expected, strict=True):
        assert type(x) is type(y)
        np.testing.assert_array_equal(x, y)


@each("lower", [False, True])
def test_solutions_by_cholesky_factors(lower):
    def solve(a, b):
        return ours.cho_solve(ours.cho_factor((a + a.T) / 2, lower), b)

    np.testing.assert_allclose(solve(*map(cytape.constant, (A, B))), np.linalg.solve(A, B))
    check_grads(solve, [A, B])
    check_grads(solve, [A, B[:, 0]])
    batch = np.stack([A, 2 * A])
    np.testing.assert_allclose(
        ours.cho_solve(linalg.cho_factor(batch, lower), cytape.constant(B)),
        np.linalg.solve(batch, B))
    with pytest.raises(ValueError, match="not both"):
        ours.cho_solve((batch, np.array([True, False])), cytape.constant(B))


@each("trans", ["N", "T", "C", 0, 1, 2])
def test_transposed_triangular_systems(trans):
    a = A + 0.5j * np.triu(A, 1)
    for lower in (False, True):
        expected = linalg.solve_triangular(a, B, trans, lower)
        found = ours.solve_triangular(cytape.constant(a), B, trans, lower)
        np.testing.assert_allclose(found, expected, 1e-14)


def test_only_the_triangle_that_is_read_has_a_gradient():
    slopes = cytape.grad(lambda a: np.sum(ours.solve_triangular(a, B, lower=True)))(A)
    assert not np.triu(slopes, 1).any() and slopes[np.tril_indices(3)].all()


def test_all_ways():
    def f(a):
        return np.sum(ours.solve_triangular(a, B, lower=True, trans=1)[0] ** 2)

    def g(a):
        factor = ours.cho_factor(a @ a.T)
        return np.sum(ours.cho_solve(factor, B)) + np.sum(np.log(np.diagonal(factor[0])))

    def plain(a):
        return np.sum(np.linalg.solve(a @ a.T, B)) + np.linalg.slogdet(a @ a.T)[1] / 2

    ways.check(f, lambda a: np.sum(np.linalg.solve(np.tril(a).T, B)[0] ** 2), A)
    ways.check(g, plain, A)


def test_errors_are_scipys():
    with pytest.raises(np.linalg.LinAlgError, match="singular"):
        ours.solve_triangular(cytape.constant(np.zeros((2, 2))), np.ones(2))
    with pytest.raises(ValueError, match="square|incompatible|shape"):
        ours.solve_triangular(cytape.constant(np.ones((2, 3))), np.ones(2))
    with pytest.raises(KeyError):
        ours.solve_triangular(cytape.constant(A), B, 5)
    with pytest.raises(np.linalg.LinAlgError, match="positive definite"):
        ours.cho_factor(cytape.constant(-A))
    for function in (ours.cholesky, lambda a: ours.solve_triangular(a, B)):
        with pytest.raises(ValueError, match="infs or NaNs"):
            function(cytape.constant(A * np.nan))


@each("lower, unit", [(lower, unit) for lower in (False, True) for unit in (False, True)])
def test_gradients_in_triangles_of_several_blocks(lower, unit):
    n = 130
    rng = np.random.default_rng(0)
    a, b, seed = rng.normal(size=(n, n)) / n + 2 * np.eye(n), rng.normal(size=n), np.arange(n)
    found = cytape.grad(lambda a: np.sum(
        seed * ours.solve_triangular(a, b, lower=lower, unit_diagonal=unit)))(a)
    weights = linalg.solve_triangular(a, seed, "T", lower=lower, unit_diagonal=unit)
    x = linalg.solve_triangular(a, b, lower=lower, unit_diagonal=unit)
    expected = -np.outer(weights, x)
    expected = np.tril(expected, -unit) if lower else np.triu(expected, unit)
    np.testing.assert_allclose(found, expected, 1e-12)
