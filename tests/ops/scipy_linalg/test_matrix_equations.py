"""Sylvester's and Lyapunov's equations."""

import numpy as np
import pytest

import cytape
from cytape.testing import check_grads
from tests.cases import each

linalg = pytest.importorskip("scipy.linalg")
ours = pytest.importorskip("cytape.scipy.linalg")

A = np.array([[4.0, 1.0, 0.5], [1.0, 5.0, 0.2], [0.5, 0.2, 6.0]])
B = np.array([[1.0, 2.0], [3.0, -1.0], [0.5, 2.5]])
C = A + 0.5j * np.triu(A, 1)
Q = B @ B.T + 0.1j * A
CALLS = {
    "solve_sylvester": [(A, A[:2, :2], B), (C, A[:2, :2], B)],
    "solve_continuous_lyapunov": [(A, Q.real), (C, Q)],
    "solve_discrete_lyapunov": [(A / 9, Q.real), (C / 9, Q), (A / 9, Q.real, "bilinear")]}


@each("name", CALLS)
def test_values_and_derivatives(name):
    for args in CALLS[name]:
        expected = getattr(linalg, name)(*args)
        np.testing.assert_array_equal(getattr(ours, name)(*args), expected)
        found = getattr(ours, name)(*map(cytape.constant, args[:2]), *args[2:])
        assert isinstance(found, cytape.Tensor) and found.dtype == expected.dtype
        np.testing.assert_allclose(found, expected, 1e-13)
        n = len(args) - isinstance(args[-1], str)
        check_grads(lambda *xs: getattr(ours, name)(*xs, *args[n:]), args[:n])  # noqa: B023


def test_the_older_name_and_errors():
    assert ours.solve_lyapunov is ours.solve_continuous_lyapunov
    with pytest.raises(ValueError, match="square"):
        ours.solve_continuous_lyapunov(cytape.constant(B), A)
    with pytest.raises(ValueError, match="Unknown solver"):
        ours.solve_discrete_lyapunov(cytape.constant(A), A, "x")


def test_a_complex_matrix_and_a_real_one_with_complex_eigenvalues():
    a, b, q = np.array([[1 + 1j, 2], [0, 3]]), np.array([[0, 1], [-1, 0.5]]), np.eye(2)
    x = ours.solve_sylvester(cytape.constant(a), b, q).numpy()
    np.testing.assert_allclose(a @ x + x @ b, q, atol=1e-14)
    check_grads(lambda *xs: ours.solve_sylvester(*map(cytape.convert_to_tensor, xs)), [a, b, q])


@each("name", ["solve_continuous_lyapunov", "solve_discrete_lyapunov"])
def test_numbers_are_matrices_of_one_element(name):
    solve, expected = getattr(ours, name), getattr(linalg, name)(np.eye(1) * 0.3, np.eye(1) * 0.4)
    np.testing.assert_allclose(solve(cytape.constant(0.3), 0.4), expected)
    gradients = cytape.grad(lambda a, q: solve(a, q)[0, 0], argnums=(0, 1))
    np.testing.assert_allclose(
        gradients(0.3, 0.4), np.ravel(gradients(np.full((1, 1), 0.3), np.full((1, 1), 0.4))))


@each("name, operands", [
    ("solve_sylvester", (A, A, 0.4)), ("solve_sylvester", (A, A[:2], A)),
    ("solve_sylvester", (A[:0], A, A)), ("solve_continuous_lyapunov", (A, A[:2])),
    ("solve_discrete_lyapunov", (A[:, :1], A))])
def test_shapes_that_do_not_fit_are_refused(name, operands):
    with pytest.raises(ValueError, match="incompatible shapes|square|two-dimensional"):
        getattr(ours, name)(*map(cytape.constant, operands))
