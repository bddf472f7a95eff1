"""QR factors, least squares, pseudoinverses, norms, determinants: SciPy's values and errors."""

import numpy as np
import pytest

import cytape
from cytape.errors import NotDifferentiableError
from cytape.testing import check_grads
from tests.cases import each
from tests.ops.matrices import hermitian, regular

linalg = pytest.importorskip("scipy.linalg")
ours = pytest.importorskip("cytape.scipy.linalg")

A = regular(np.random.default_rng(0), (4, 4))
Z = A + 0.3j * regular(np.random.default_rng(1), (4, 4))
B = np.array([[1.0, 2.0], [3.0, -1.0], [0.5, 2.5], [2.0, 1.0]])
CALLS = {
    "qr": lambda m, a: m.qr(a), "economic": lambda m, a: m.qr(a[:, :3], mode="economic"),
    "full": lambda m, a: m.qr(a[:, :3])[1], "r": lambda m, a: m.qr(a[:, :3], mode="r"),
    "wide": lambda m, a: m.qr(a[:3], mode="r"),
    "pivots": lambda m, a: m.qr(a, pivoting=True)[:2],
    "det": lambda m, a: m.det(a), "norm": lambda m, a: m.norm(a),
    "norms": lambda m, a: m.norm(a, 2, axis=0, keepdims=True),
    "pinv": lambda m, a: m.pinv(a[:, :3]), "pinv atol": lambda m, a: m.pinv(a[:3], atol=0.1),
    "pinv rtol": lambda m, a: m.pinv(a, rtol=1e-3), "pinvh": lambda m, a: m.pinvh(hermitian(a)),
    "lstsq": lambda m, a: m.lstsq(a[:, :3], B)[:2], "lstsq vector": lambda m, a: m.lstsq(
        a[:, :3], B[:, 0])[:2], "singular values": lambda m, a: m.lstsq(a[:3], B[:3])[3]}


@each(name=CALLS, a=[A, Z])
def test_values_and_derivatives(name, a):
    def f(m, a):
        result = CALLS[name](m, a)
        return tuple(result) if isinstance(result, (tuple, list)) else (result,)

    for found, expected in zip(f(ours, cytape.constant(a)), f(linalg, a), strict=True):
        assert isinstance(found, cytape.Tensor) and found.dtype == expected.dtype
        assert found.shape == np.shape(expected)
        np.testing.assert_allclose(found, expected, 1e-10, 1e-12)
    for found, expected in zip(f(ours, a), f(linalg, a), strict=True):
        np.testing.assert_array_equal(found, expected)
    check_grads(lambda a: f(ours, a), [a], order=1)
    if name != "pinv atol":
        cytape.function(lambda a: f(ours, a))(a)


def test_ranks_and_pivots():
    t = cytape.constant(A)
    assert ours.qr(t, pivoting=True)[2].numpy().tolist() == linalg.qr(A, pivoting=True)[2].tolist()
    assert int(ours.lstsq(t, B)[2]) == 4
    for name in ("pinv", "pinvh"):
        for a in (A, np.diag([1.0, 2.0, 0.0])):
            found = getattr(ours, name)(cytape.constant(a), return_rank=True)[1]
            assert int(found) == getattr(linalg, name)(a, return_rank=True)[1]


def test_errors():
    t = cytape.constant(A)
    with pytest.raises(NotDifferentiableError, match="modes"):
        ours.qr(t, mode="raw")
    for call, message in [
            (lambda: ours.qr(t, mode="x"), "Mode"), (lambda: ours.lstsq(t, B, lapack_driver="x"),
                                                     "LAPACK driver"),
            (lambda: ours.pinv(t, atol=-1.0), "positive"),
            (lambda: cytape.function(lambda a: ours.pinv(a, atol=0.1))(A), "atol needs the values"),
            *[(lambda f=f: f(t * np.nan), "infs or NaNs")
              for f in (ours.qr, ours.pinv, ours.norm, ours.det, lambda a: ours.lstsq(a, B))]]:
        with pytest.raises(ValueError, match=message):
            call()


@each("m, columns", [(4, ()), (4, (2,)), (3, ()), (2, ())])
def test_shapes_of_least_squares_in_functions(m, columns):
    a, b = np.random.default_rng(0).normal(size=(m, 3)), np.ones((m, *columns))
    expected = linalg.lstsq(a, b)
    rank = ours.lstsq(a, cytape.constant(b), lapack_driver="gelsy")
    assert [np.shape(x) for x in rank[1:3]] == [(0,), ()] and rank[3] is None
    for found in (ours.lstsq(a.tolist(), cytape.constant(b)), cytape.function(ours.lstsq)(a, b)):
        assert [np.shape(x) for x in found] == [np.shape(x) for x in expected]


def test_a_cut_by_another_driver_is_refused():
    a, b = np.diag([3.0, 1.0]), cytape.constant([1.0, 2.0])
    for call in (ours.lstsq, cytape.function(ours.lstsq)):
        with pytest.raises(TypeError, match="takes lapack_driver"):
            call(a, b, 0.5, lapack_driver="gelsy")
    found = ours.lstsq(a, b, 0.1, lapack_driver="gelsy")[0]
    np.testing.assert_allclose(found, [1 / 3, 2.0])


@each("lower", [True, False])
def test_one_triangle_of_hermitian_matrices_is_read(lower):
    matrix = np.array([[4.0, 1.0, 0.0], [1.0, 3.0, 1.0], [0.0, 1.0, 5.0]]) + 1j * np.triu(
        np.ones((3, 3)), 1) - 1j * np.tril(np.ones((3, 3)), -1)
    part = np.tril(matrix) if lower else np.triu(matrix)
    part = part + (np.triu if lower else np.tril)(np.full((3, 3), 7.0), 1 if lower else -1)
    weights = np.arange(9.0).reshape(3, 3)

    def f(a, lower=lower):
        return np.sum(weights * np.abs(ours.pinvh(a, lower=lower)) ** 2)

    np.testing.assert_allclose(
        ours.pinvh(cytape.constant(part), lower=lower), linalg.pinvh(part, lower=lower), 1e-12)
    np.testing.assert_allclose(cytape.grad(f)(part), cytape.grad(f)(matrix), 1e-10)
    if lower:
        np.testing.assert_allclose(
            *[cytape.grad(lambda a: np.abs(np.linalg.pinv(a, hermitian=True))[0, 1])(a)
              for a in (part, matrix)], 1e-10)
