"""LU factors: SciPy's values, rectangular matrices, solutions, all ways."""

import numpy as np
import pytest

import cytape
from cytape.testing import check_grads
from tests import ways
from tests.cases import each

linalg = pytest.importorskip("scipy.linalg")
ours = pytest.importorskip("cytape.scipy.linalg")

A = np.array([[1.0, 2.0, 0.5], [4.5, 5.0, 0.2], [-0.5, 0.7, 6.0]])
C = A + 0.5j * np.array([[0.3, 1, 2], [-1, 0.2, 1], [0.4, -2, 1]])
B = np.array([[1.0, 2.0], [3.0, -1.0], [0.5, 2.5]])


@each("a", [A, C, A[:, :2], A[:2], np.stack([A, A.T])])
def test_factors(a):
    t = cytape.constant(a)
    for options in ({}, {"permute_l": True}, {"p_indices": True}):
        for x, y in zip(ours.lu(t, **options), linalg.lu(a, **options), strict=True):
            assert x.dtype == y.dtype
            np.testing.assert_allclose(x, y, 1e-14, 1e-14)
    check_grads(lambda a: ours.lu(a)[1:], [a])
    check_grads(lambda a: ours.lu(a, permute_l=True), [a], order=1)


@each(trans=[0, 1, 2], a=[A, C])
def test_solutions(trans, a):
    def f(a, b):
        return ours.lu_solve(ours.lu_factor(a), b, trans)

    np.testing.assert_allclose(
        f(cytape.constant(a), B), linalg.lu_solve(linalg.lu_factor(a), B, trans), 1e-13)
    check_grads(f, [a, B], order=1)
    check_grads(lambda b: ours.lu_solve(linalg.lu_factor(a), b, trans), [B[:, 0]], order=1)


def test_all_ways():
    def f(a):
        packed, pivots = ours.lu_factor(a)
        return np.sum(ours.lu_solve((packed, pivots), B) ** 2) + np.sum(
            np.log(np.abs(np.diagonal(packed))))

    ways.check(f, lambda a: np.sum(np.linalg.solve(a, B) ** 2) + np.linalg.slogdet(a)[1], A,
               ways=ways.OF_KNOWN_EXTENTS)


@each("imaginary", [0, 1j])
def test_gradients_by_blocks(imaginary, monkeypatch):
    rng = np.random.default_rng(0)
    a, weights = (rng.normal(size=(2, 13, 13)) + imaginary * rng.normal(size=(2, 13, 13)))

    def slopes():
        return cytape.grad(lambda a: np.sum(np.real(np.conj(weights) * ours.lu_factor(a)[0])))(a)

    whole = slopes()
    monkeypatch.setattr("cytape.ops.scipy_linalg.lu_factors.BLOCK", 5)
    monkeypatch.setattr("cytape.ops.scipy_linalg.lu_factors.AT_ONCE", 5)
    np.testing.assert_allclose(slopes(), whole, 1e-9, 1e-9)


def test_errors():
    with pytest.raises(ValueError, match="infs or NaNs"):
        ours.lu_factor(cytape.constant(A * np.inf))
    with pytest.raises(ValueError, match="trans"):
        ours.lu_solve(ours.lu_factor(cytape.constant(A)), B, 3)
    with pytest.raises(ValueError, match="incompatible"):
        ours.lu_solve(ours.lu_factor(cytape.constant(A)), np.ones(2))


def test_unknown_extents():
    a, b = np.array([[1.0, 4.0], [3.0, 2.0]]), np.ones(2)
    specs = [cytape.Spec.of((None,) * n, "float64") for n in (2, 1)]
    for trans in (0, 1):
        f = cytape.function(lambda a, b, t=trans: ours.lu_solve(ours.lu_factor(a), b, t),
                            input_signature=specs)
        np.testing.assert_allclose(f(a, b), np.linalg.solve(a.T if trans else a, b))
