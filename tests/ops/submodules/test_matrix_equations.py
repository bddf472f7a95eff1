"""Functions of `scipy.linalg`: arrays, factors, transposed systems, errors."""

import numpy as np
import pytest

import cytape
from cytape.testing import check_grads
from tests.cases import each

linalg = pytest.importorskip("scipy.linalg")
ours = pytest.importorskip("cytape.scipy.linalg")

A = np.array([[4.0, 1.0, 0.5], [1.0, 5.0, 0.2], [0.5, 0.2, 6.0]])
B = np.array([[1.0, 2.0], [3.0, -1.0], [0.5, 2.5]])
CALLS = {
    "solve_triangular": (A, B, 1), "solve_banded": ((1, 1), A, B), "sqrtm": (A,), "expm": (A,),
    "solve_sylvester": (A, A[:2, :2], B), "cholesky": (A, True), "cho_factor": (A,),
    "cho_solve": ((A, True), B), "inv": (A,), "det": (A,), "eigh": (A,)}


@each("name", CALLS)
def test_arrays_are_left_to_scipy(name):
    found, expected = [getattr(where, name)(*CALLS[name]) for where in (ours, linalg)]
    if not isinstance(expected, tuple):
        found, expected = (found,), (expected,)
    for x, y in zip(found, expected, strict=True):
        np.testing.assert_allclose(x, y, 1e-14)


@each("lower", [False, True])
def test_solutions_by_cholesky_factors(lower):
    def solve(a, b):
        return ours.cho_solve(ours.cho_factor((a + a.T) / 2, lower), b)

    np.testing.assert_allclose(solve(*map(cytape.constant, (A, B))), np.linalg.solve(A, B))
    check_grads(solve, [A, B])
    check_grads(solve, [A, B[:, 0]])


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


def test_the_exponential_is_differentiated_to_third_order():
    f = cytape.grad(cytape.grad(cytape.grad(lambda x: ours.expm(x * A / 5)[0, 1])))
    step = 1e-4
    second = [linalg.expm(x * A / 5) @ A @ A / 25 for x in (1 - step, 1 + step)]
    np.testing.assert_allclose(f(1.0), (second[1] - second[0])[0, 1] / (2 * step), 1e-6)


def test_errors_are_scipys():
    with pytest.raises(np.linalg.LinAlgError, match="singular"):
        ours.solve_triangular(cytape.constant(np.zeros((2, 2))), np.ones(2))
    with pytest.raises(ValueError, match="square|incompatible|shape"):
        ours.solve_triangular(cytape.constant(np.ones((2, 3))), np.ones(2))
    with pytest.raises(KeyError):
        ours.solve_triangular(cytape.constant(A), B, 5)
    with pytest.raises(np.linalg.LinAlgError):
        ours.expm(cytape.constant([1.0, 2.0]))
