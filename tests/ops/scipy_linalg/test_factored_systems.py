"""`solve` by structures: SciPy's values, derivatives that reuse the factor, all ways, errors."""

import warnings

import numpy as np
import pytest

import cytape
from cytape.testing import check_grads
from tests import ways
from tests.cases import each
from tests.ops.matrices import hermitian, squared

linalg = pytest.importorskip("scipy.linalg")
ours = pytest.importorskip("cytape.scipy.linalg")
factored_systems = pytest.importorskip("cytape.ops.scipy_linalg.factored_systems")

A = np.array([[4.0, 1.0, 0.5], [1.5, 5.0, 0.2], [-0.5, 0.7, 6.0]])
C = A + 0.5j * np.array([[0.3, 1, 2], [-1, 0.2, 1], [0.4, -2, 1]])
B = np.array([[1.0, 2.0], [3.0, -1.0], [0.5, 2.5]])
PARTS = {  # functions that make matrices of a structure
    None: lambda a: a, "general": lambda a: a, "sym": lambda a: a + np.swapaxes(a, -1, -2),
    "her": hermitian, "pos": squared, "banded": lambda a: np.tril(a, 1), "tridiagonal": lambda a: a,
    "diagonal": lambda a: a, "upper triangular": lambda a: a, "lower triangular": lambda a: a}


@each(structure=PARTS, a=[A, C])
def test_structures(structure, a):
    for lower in (False, True):
        def f(a, b):
            return ours.solve(
                PARTS[structure](a), b, assume_a=structure, lower=lower)  # noqa: B023

        expected = linalg.solve(np.asarray(PARTS[structure](a)), B, assume_a=structure)
        found = f(cytape.constant(a), B)
        assert found.dtype == expected.dtype
        np.testing.assert_allclose(found, expected, 1e-12)
        check_grads(f, [a, B], order=2 if lower and a is C else 1)


@each("structure", ["general", "sym", "pos"])
def test_transposed_and_stacked_systems(structure):
    part = PARTS[structure]

    def f(a, b, **options):
        return ours.solve(part(a), b, assume_a=structure, **options)

    np.testing.assert_allclose(
        f(cytape.constant(A), B, transposed=True),
        linalg.solve(np.asarray(part(A)), B, assume_a=structure, transposed=True), 1e-13)
    check_grads(lambda a, b: f(a, b, transposed=True), [A, B[:, 0]], order=1)
    check_grads(f, [np.stack([A, A + 1]), B])
    with pytest.raises(NotImplementedError, match="complex"):
        ours.solve(cytape.constant(C), B, transposed=True)


@each("structure", [None, "sym", "pos", "banded", "tridiagonal"])
def test_all_ways(structure):
    part = (lambda a: a @ a.T) if structure == "pos" else PARTS[structure]
    cut = (lambda a: np.tril(np.triu(a, -1), 1)) if structure == "tridiagonal" else (lambda a: a)
    x = np.tril(A, 1)
    known = ways.OF_KNOWN_EXTENTS if structure in ("banded", "tridiagonal") else ways.WAYS
    ways.check(
        lambda a: np.sum(ours.solve(part(a), B, assume_a=structure) ** 2),
        lambda a: np.sum(np.linalg.solve(cut(part(a)), B) ** 2), x, ways=known)


def test_the_matrix_is_factored_once(monkeypatch):
    calls = []
    factor = factored_systems._factor
    monkeypatch.setattr(
        factored_systems, "_factor", lambda *args, **options: (
            calls.append(1), factor(*args, **options))[1])
    monkeypatch.setattr(np.linalg, "solve", None)
    monkeypatch.setattr(np.linalg, "inv", None)
    for structure in ("gen", "pos", "sym"):
        slopes = cytape.hessian(
            lambda b: np.sum(
                ours.solve(squared(A), b, assume_a=structure) ** 3))(  # noqa: B023
                B[:, 0])
        assert slopes.any()
    assert len(calls) == 3


def test_single_precision_integers_and_inverses():
    a, b = cytape.constant(A.astype(np.float32)), B.astype(np.float32)
    assert ours.solve(a, b).dtype == np.float32
    assert ours.solve(cytape.constant([[2, 0], [0, 4]]), [1, 2]).numpy().tolist() == [0.5, 0.5]
    for structure in ("gen", "pos", "upper triangular"):
        part = PARTS.get(structure, np.asarray)
        np.testing.assert_allclose(
            ours.inv(cytape.constant(np.asarray(part(A))), assume_a=structure),
            linalg.inv(np.asarray(part(A)), assume_a=structure), 1e-12)


def test_errors_and_warnings_are_scipys():
    zeros = cytape.constant(np.zeros((2, 2)))
    for structure in ("gen", "sym", "diagonal", "upper triangular"):
        with pytest.raises(np.linalg.LinAlgError, match="singular"):
            ours.solve(zeros, np.ones(2), assume_a=structure)
        with pytest.raises(np.linalg.LinAlgError, match="singular"):
            cytape.function(
                lambda a: ours.solve(a, np.ones(2), assume_a=structure))(zeros)  # noqa: B023
    with pytest.raises(np.linalg.LinAlgError, match="positive definite"):
        ours.solve(-cytape.constant(np.eye(2)), np.ones(2), assume_a="pos")
    with pytest.raises(ValueError, match="not a recognized matrix structure"):
        ours.solve(zeros, np.ones(2), assume_a="x")
    for a, b, message in [
            (np.ones((2, 3)), np.ones(2), "square"), (np.eye(2), np.ones(3), "incompatible"),
            (np.eye(2) * np.nan, np.ones(2), "infs or NaNs"),
            (np.eye(2), np.full(2, np.inf), "infs or NaNs")]:
        with pytest.raises(ValueError, match=message):
            ours.solve(cytape.constant(a), b)
    with pytest.warns(linalg.LinAlgWarning, match="[Ii]ll-conditioned"):
        ours.solve(cytape.constant([[1, 1], [1, 1 + 1e-16 + 3e-16]]), np.ones(2))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ours.solve(cytape.constant(A), B)
