"""`eigsh`: SciPy's values, derivatives of values and vectors, equal eigenvalues."""

import numpy as np
import pytest

import cytape
from cytape.errors import NotDifferentiableError
from cytape.testing import check_grads
from tests.cases import each

scipys = pytest.importorskip("scipy.sparse")
scipys_linalg = pytest.importorskip("scipy.sparse.linalg")
sparse = pytest.importorskip("cytape.scipy.sparse")
linalg = pytest.importorskip("cytape.scipy.sparse.linalg")

OFF = np.array([1.0, -0.5, 0.8, 0.3, 1.2])
MAIN = np.array([1.0, 3.0, 5.0, 8.0, 12.0, 14.0])
START = {"v0": np.ones(6)}


def matrix(main, off, of=sparse):
    return of.diags_array([off.conj(), main, off], offsets=[-1, 0, 1]).tocsr()


@each(options=[{}, {"which": "SA"}, {"sigma": 4.5}, {"which": "SM"}], turn=[0, 0.3j])
def test_values_and_derivatives(options, turn):
    options, off = {**START, **options, "k": 2}, OFF * (1 + turn)
    a, t = matrix(MAIN, off, scipys), matrix(cytape.constant(MAIN), off)
    for found, expected in zip(
            linalg.eigsh(t, **options), scipys_linalg.eigsh(a, **options), strict=True):
        np.testing.assert_allclose(np.abs(found), np.abs(expected), 1e-9, 1e-9)
    np.testing.assert_allclose(
        linalg.eigsh(t, return_eigenvectors=False, **options),
        scipys_linalg.eigsh(a, return_eigenvectors=False, **options), 1e-9)
    assert type(linalg.eigsh(a, **options)[0]) is np.ndarray

    def f(main, off):
        w, v = linalg.eigsh(matrix(main, off), **options)
        return w, np.abs(v) ** 2

    if not turn:
        check_grads(f, [MAIN, off], order=2 if not options.get("which") else 1)
    check_grads(lambda main: f(main, cytape.constant(off)), [MAIN], order=1)


@each(options=[
    {}, {"which": "SM"}, {"which": "SA"}, {"which": "LA"}, {"sigma": 0.2},
    {"sigma": 0.2, "which": "LA"}, {"sigma": 0.2, "which": "SM"}], turn=[0, 0.3j])
def test_values_of_both_signs_have_the_order_of_scipy(options, turn):
    options, main = {**START, **options, "k": 3, "return_eigenvectors": False}, MAIN - 7
    off = OFF * (1 + turn)
    np.testing.assert_allclose(
        linalg.eigsh(matrix(cytape.constant(main), off), **options),
        scipys_linalg.eigsh(matrix(main, off, scipys), **options), 1e-9)


def test_in_functions_and_of_dense_matrices():
    def f(a):
        w, v = linalg.eigsh((a + a.T) / 2, k=1, **START)
        return w[0] + np.sum(v[:, 0] ** 2 * np.arange(6))

    a = matrix(MAIN, OFF, scipys).toarray()
    check_grads(f, [a], order=1)
    np.testing.assert_allclose(
        cytape.function(cytape.grad(f))(a), cytape.grad(f)(a), 1e-8, 1e-10)


def test_equal_eigenvalues():
    def vectors(d):
        return linalg.eigsh(sparse.diags(d), k=2, v0=np.arange(1.0, 5))[1][0, 0]

    d = np.array([1.0, 1.0, 3.0, 3.0])
    with pytest.raises(np.linalg.LinAlgError, match="equal to another one"):
        cytape.grad(vectors)(d)
    slopes = cytape.grad(
        lambda d: np.sum(linalg.eigsh(sparse.diags(d), k=1, v0=np.arange(1.0, 5))[0]))(
            np.array([1.0, 1.0, 3.0, 4.0]))
    np.testing.assert_allclose(slopes, [0, 0, 0, 1], atol=1e-12)


def test_errors():
    t = matrix(cytape.constant(MAIN), OFF)
    with pytest.raises(NotDifferentiableError, match="without M"):
        linalg.eigsh(t, M=scipys.eye_array(6))
    with pytest.raises(TypeError, match=r"k < N.*eigh"):
        linalg.eigsh(t)
    with pytest.raises(ValueError, match="square"):
        linalg.eigsh(cytape.constant(np.ones((2, 3))), k=1)
