"""Iterative solutions: SciPy's values, derivatives, preconditioners, failures."""

import numpy as np
import pytest

import cytape
from cytape.errors import DetachedError, NotDifferentiableError, SymbolicTensorError, TapeStateError
from cytape.testing import check_grads
from tests import ways
from tests.cases import each

scipys = pytest.importorskip("scipy.sparse")
scipys_linalg = pytest.importorskip("scipy.sparse.linalg")
sparse = pytest.importorskip("cytape.scipy.sparse")
linalg = pytest.importorskip("cytape.scipy.sparse.linalg")

MATRIX = scipys.csr_array(np.array([
    [4.0, 1.0, 0, 0], [0, 5.0, 0, 0.5], [-1.0, 0, 3.0, 0], [0, 2.0, 1.0, 6.0]]))
HERMITIAN = scipys.csr_array(MATRIX + MATRIX.T)
B = np.array([1.0, 3.0, 0.5, 2.0])
FINE = {"rtol": 1e-13}
METHODS = ["bicg", "bicgstab", "cg", "cgs", "gcrotmk", "gmres", "lgmres", "minres", "qmr", "tfqmr"]


def of(data, matrix):
    a = sparse.csr_array(
        (cytape.convert_to_tensor(data), matrix.indices, matrix.indptr), shape=matrix.shape)
    return (a + a.T) / 2 if matrix is HERMITIAN else a


@each("name", METHODS)
def test_values_and_derivatives(name):
    matrix = HERMITIAN if name in ("cg", "minres") else MATRIX
    theirs = getattr(scipys_linalg, name)(matrix, B, **FINE)
    plain = getattr(linalg, name)(matrix, B, **FINE)
    np.testing.assert_array_equal(plain[0], theirs[0])
    x, info = getattr(linalg, name)(of(matrix.data, matrix), B, **FINE)
    assert isinstance(info, cytape.Tensor) and info == theirs[1] == 0
    np.testing.assert_allclose(x, theirs[0], 1e-11)
    check_grads(lambda data, b: getattr(linalg, name)(of(data, matrix), b, **FINE)[0],
                [matrix.data, B], order=2 if name == "gmres" else 1)


def test_matrices_of_other_kinds():
    check_grads(lambda a, b: linalg.gmres(a, b, **FINE)[0], [MATRIX.toarray(), B])
    check_grads(lambda b: linalg.gmres(scipys_linalg.aslinearoperator(MATRIX), b, **FINE)[0], [B])
    product = scipys_linalg.LinearOperator((4, 4), matvec=lambda x: HERMITIAN @ x)
    check_grads(lambda b: linalg.cg(product, b, **FINE)[0], [B])
    z = MATRIX.data * (1 + 0.2j)
    check_grads(lambda data, b: linalg.gmres(of(data, MATRIX), b, **FINE)[0], [z, B + 1j], order=1)


def test_preconditioners_starts_and_callbacks():
    calls = []
    inverse = scipys_linalg.LinearOperator((4, 4), matvec=lambda x: x / MATRIX.diagonal(),
                                           rmatvec=lambda x: x / MATRIX.diagonal())

    def f(b, x0=None):
        return linalg.bicgstab(MATRIX, b, x0, M=inverse, callback=calls.append, **FINE)[0]

    check_grads(f, [B])
    n = len(calls)
    cytape.grad(lambda b: np.sum(f(b)))(B)
    assert 0 < len(calls) - n < 10  # not of the adjoint
    slopes = cytape.grad(lambda b: np.sum(f(b, 2 * b)))(B)
    np.testing.assert_allclose(slopes, np.linalg.solve(MATRIX.toarray().T, np.ones(4)), 1e-9)


@each("name, option", [("gcrotmk", "CU"), ("lgmres", "outer_v")])
def test_recycled_vectors_are_those_of_the_solution(name, option):
    rng = np.random.default_rng(0)
    matrix, b = scipys.csr_array(rng.normal(size=(12, 12)) + 8 * np.eye(12)), rng.normal(size=12)
    recycled = []
    for _ in range(2):  # with none, and with those of the first solution
        slopes = cytape.grad(lambda b: np.sum(getattr(linalg, name)(
            matrix, b, **FINE, **{option: recycled})[0]))(b)
        np.testing.assert_allclose(slopes, np.linalg.solve(matrix.toarray().T, np.ones(12)), 1e-9)
    assert recycled


def test_operators_without_an_adjoint():
    factors = scipys_linalg.spilu(scipys.csc_array(MATRIX))
    inverse = scipys_linalg.LinearOperator((4, 4), factors.solve)
    product = scipys_linalg.LinearOperator((4, 4), lambda x: MATRIX @ x)
    for name, call in (("M", lambda b: linalg.gmres(MATRIX, b, M=inverse)[0]),
                       ("A", lambda b: linalg.gmres(product, b)[0])):
        np.testing.assert_allclose(
            cytape.jvp(call, (B,), (B,))[1], np.linalg.solve(MATRIX.toarray(), B), 1e-4)
        with pytest.raises(NotDifferentiableError, match=f"the adjoint of {name}, .*rmatvec"):
            cytape.grad(lambda b: np.sum(call(b)))(B)  # noqa: B023


def test_all_ways():
    ways.check(lambda b: np.sum(linalg.cg(HERMITIAN, b, **FINE)[0] ** 3),
               lambda b: np.sum(np.linalg.solve(HERMITIAN.toarray(), b) ** 3), B)


def test_solutions_that_do_not_converge():
    x, info = linalg.cg(HERMITIAN, cytape.constant(B), maxiter=1, **FINE)
    assert info > 0  # SciPy's flag
    for derivative in (cytape.grad(lambda b: linalg.cg(HERMITIAN, b, maxiter=1, **FINE)[0][0]),
                       cytape.jacfwd(lambda b: linalg.cg(HERMITIAN, b, maxiter=1, **FINE)[0])):
        with pytest.raises(np.linalg.LinAlgError, match="derivative did not converge .info = 1"):
            derivative(B)


def test_errors():
    t = of(MATRIX.data, MATRIX)
    for call, message in [
            (lambda: linalg.cg(t, B[:3]), "incompatible dimensions"),
            (lambda: linalg.cg(cytape.constant(np.ones((2, 3))), B[:2]), "square"),
            (lambda: linalg.cg(cytape.constant(B), B), "matrix of known shape")]:
        with pytest.raises(ValueError, match=message):
            call()
    with pytest.raises(TypeError, match="M has no derivative"):
        linalg.cg(t, B, M=t)


@each("place", [cytape.grad, lambda f: cytape.grad(cytape.function(f))])
def test_an_operator_must_not_read_recorded_tensors(place):
    def f(d):
        product = scipys_linalg.LinearOperator((4, 4), matvec=lambda x: d * x, dtype=float)
        return np.sum(linalg.cg(product, B)[0])

    with pytest.raises((DetachedError, SymbolicTensorError), match="optimize.root"):
        place(f)(B)


def test_an_operator_that_changes_is_an_error():
    def total(b, bind):
        found = 0.0
        for k in (1.0, 2.0):
            matvec = (lambda x, k=k: k * x) if bind else lambda x: k * x  # noqa: B023
            found = found + np.sum(linalg.cg(scipys_linalg.LinearOperator(
                (3, 3), matvec=matvec, dtype=float), b)[0])
        return found

    for transform in (cytape.grad, lambda f: cytape.function(cytape.grad(f))):
        slope = transform(lambda b: total(b, True))
        np.testing.assert_allclose(slope(np.ones(3)), np.full(3, 1.5))
        with pytest.raises(TapeStateError, match="have changed since the call"):
            transform(lambda b: total(b, False))(np.ones(3))
