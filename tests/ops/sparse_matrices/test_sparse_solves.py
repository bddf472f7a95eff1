"""Sparse equations: SciPy's values, one factorisation, all ways, errors."""

import numpy as np
import pytest

import cytape
from cytape.testing import check_grads
from tests import ways
from tests.cases import each

scipys = pytest.importorskip("scipy.sparse")
scipys_linalg = pytest.importorskip("scipy.sparse.linalg")
sparse = pytest.importorskip("cytape.scipy.sparse")
linalg = pytest.importorskip("cytape.scipy.sparse.linalg")

MATRIX = scipys.csr_array(np.array([
    [4.0, 1.0, 0, 0], [0, 5.0, 0, 0.5], [-1.0, 0, 3.0, 0], [0, 2.0, 1.0, 6.0]]))
DATA, DENSE = MATRIX.data, MATRIX.toarray()
B = np.array([[1.0, 2.0], [3.0, -1.0], [0.5, 2.5], [2.0, 1.0]])


def of(data):
    return sparse.csr_array((data, MATRIX.indices, MATRIX.indptr), shape=MATRIX.shape)


@each(turn=[0, 0.2j], turn_b=[0, 1j], columns=[0, slice(0, 1), slice(None)])
def test_spsolve(turn, turn_b, columns):
    data, b = DATA * (1 + turn), B[:, columns] * (1 + turn_b)
    found = linalg.spsolve(of(cytape.constant(data)), b)
    expected = scipys_linalg.spsolve(of(data), b)
    assert found.dtype == expected.dtype and found.shape == expected.shape
    np.testing.assert_allclose(found, expected, 1e-12)
    check_grads(lambda data, b: linalg.spsolve(of(data), b), [data, b], order=1 if turn_b else 2)


@each(trans="NTH", turn=[0, 0.2j])
def test_splu(trans, turn):
    data = DATA * (1 + turn)
    theirs = scipys_linalg.splu(of(data).tocsc()).solve(B * (1 + turn), trans)
    found = linalg.splu(of(cytape.constant(data))).solve(B * (1 + turn), trans)
    np.testing.assert_allclose(found, theirs, 1e-13)
    check_grads(lambda data, b: linalg.splu(
        of(data) if isinstance(data, cytape.Tensor) else of(data).tocsc()).solve(b, trans),
        [data, B * (1 + turn)], order=1)


def test_factors_of_scipys_matrices_take_tensors():
    factors = linalg.splu(MATRIX.tocsc())
    assert factors.L.shape == (4, 4) and isinstance(factors.solve(B), np.ndarray)
    solve = linalg.factorized(MATRIX.tocsc())
    for f in (factors.solve, solve):
        check_grads(f, [B[:, 0]])
    with pytest.raises(AttributeError, match="SparseTensor have no attribute 'L'"):
        linalg.splu(of(cytape.constant(DATA))).L  # noqa: B018


def test_single_precision_and_arrays():
    found = linalg.spsolve(of(cytape.constant(DATA.astype("f"))), B.astype("f"))
    assert found.dtype == np.float32
    x = linalg.spsolve(MATRIX, B[:, 0])
    assert type(x) is np.ndarray
    np.testing.assert_array_equal(x, scipys_linalg.spsolve(MATRIX, B[:, 0]))


def test_one_factorisation_serves_all_derivatives(monkeypatch):
    calls, splu = [], scipys_linalg.splu
    monkeypatch.setattr(
        scipys_linalg, "splu", lambda *args, **options: (
            calls.append(1), splu(*args, **options))[1])

    def f(data, b):
        return np.sum(linalg.spsolve(of(data), b) ** 3)

    cytape.grad(f, argnums=(0, 1))(DATA, B)
    assert len(calls) == 1
    cytape.hessian(f)(DATA, B)
    assert len(calls) == 2
    step = cytape.function(cytape.grad(f))
    for scale in (1.0, 1.0, 2.0):  # other values in the same plan
        np.testing.assert_allclose(
            step(scale * DATA, B), cytape.grad(f)(scale * DATA, B), 1e-12)


def test_all_ways():
    def f(data):
        return np.sum(linalg.spsolve(of(data), B) ** 2)

    def plain(data):
        rows = np.repeat(np.arange(4), np.diff(MATRIX.indptr))
        a = cytape.ops.indexing.scatter_add(data, rows * 4 + MATRIX.indices, (16,)).reshape(4, 4)
        return np.sum(np.linalg.solve(a, B) ** 2)

    ways.check(f, plain, DATA, ways=ways.OF_KNOWN_EXTENTS)
    ways.check(lambda b: np.sum(linalg.spsolve(MATRIX, b) ** 3),
               lambda b: np.sum(np.linalg.solve(DENSE, b) ** 3), B)


def test_errors_and_warnings_are_scipys():
    t = of(cytape.constant(DATA))
    with pytest.warns(scipys_linalg.MatrixRankWarning, match="singular"):
        assert np.isnan(linalg.spsolve(of(cytape.constant(DATA * 0)), B)).numpy().all()
    with pytest.raises(RuntimeError, match="singular"):
        linalg.splu(of(cytape.constant(DATA * 0))).solve(B)
    with pytest.raises(ValueError, match="mismatch"):
        linalg.spsolve(t, B[:3])
    with pytest.raises(TypeError, match="toarray"):
        linalg.spsolve(t, MATRIX)
    with pytest.raises(TypeError, match=r"sparse matrix.*cytape\.scipy\.linalg\.solve"):
        linalg.spsolve(DENSE, cytape.constant(B))
    wide = sparse.csr_array((cytape.constant(DATA[:2]), [0, 2], [0, 1, 2]), shape=(2, 3))
    for f in (lambda: linalg.spsolve(wide, B[:2]), lambda: linalg.splu(wide)):
        with pytest.raises(ValueError, match="square"):
            f()
    with pytest.raises(ValueError, match="trans"):
        linalg.splu(t).solve(B, "X")
