"""Eigenvalues, singular values and polar factors: SciPy's values, subsets, equal values, errors."""

import numpy as np
import pytest

import cytape
from cytape.errors import NotDifferentiableError
from cytape.testing import check_grads
from tests import ways
from tests.cases import each
from tests.ops.matrices import hermitian, regular, squared

linalg = pytest.importorskip("scipy.linalg")
ours = pytest.importorskip("cytape.scipy.linalg")

A = regular(np.random.default_rng(0), (4, 4))
Z = A + 0.3j * regular(np.random.default_rng(1), (4, 4))


def sizes(x):
    """Return magnitudes, which do not depend on the phase of a vector."""
    return np.abs(x) ** 2


def values_and_sizes(result):
    return result[0], sizes(result[1])


CALLS = {
    "eigh": lambda m, a: values_and_sizes(m.eigh(hermitian(a))),
    "eigh upper": lambda m, a: m.eigh(hermitian(a), lower=False, eigvals_only=True),
    "eigh driver": lambda m, a: values_and_sizes(m.eigh(hermitian(a), driver="ev")),
    "eigvalsh": lambda m, a: m.eigvalsh(hermitian(a)),
    "by index": lambda m, a: values_and_sizes(m.eigh(hermitian(a), subset_by_index=[1, 2])),
    "by value": lambda m, a: values_and_sizes(m.eigh(hermitian(a), subset_by_value=[0, 5])),
    "general": lambda m, a: values_and_sizes(m.eigh(hermitian(a), squared(a + 1))),
    "general values": lambda m, a: m.eigvalsh(hermitian(a), squared(a + 1)),
    "type 2": lambda m, a: values_and_sizes(m.eigh(hermitian(a), squared(a + 1), type=2)),
    "type 3": lambda m, a: values_and_sizes(
        m.eigh(hermitian(a), squared(a + 1), type=3, lower=False, driver="gv")),
    "eig": lambda m, a: values_and_sizes(m.eig(a)), "eigvals": lambda m, a: m.eigvals(a),
    "eig alone": lambda m, a: m.eig(a, right=False),
    "svd": lambda m, a: m.svd(a[:3])[1], "svdvals": lambda m, a: m.svdvals(a),
    "svd factors": lambda m, a: [sizes(m.svd(a[:, :3], False)[i]) for i in (0, 2)],
    "polar": lambda m, a: m.polar(a), "polar left": lambda m, a: m.polar(a, "left"),
    "polar tall": lambda m, a: m.polar(a[:, :3]), "polar wide": lambda m, a: m.polar(a[:3], "left")}


@each(name=CALLS, a=[A, Z])
def test_values_and_derivatives(name, a):
    def f(m, a):
        result = CALLS[name](m, a)
        return tuple(result) if isinstance(result, (tuple, list)) else (result,)

    for found, expected in zip(f(ours, cytape.constant(a)), f(linalg, a), strict=True):
        assert isinstance(found, cytape.Tensor) and found.dtype == expected.dtype
        np.testing.assert_allclose(found, expected, 1e-10, 1e-12)
    check_grads(lambda a: f(ours, a), [a], order=1 if a is Z else 2)


@each("lower", [True, False])
def test_other_types_read_one_triangle(lower):
    (a, b), place = (hermitian(Z), squared(Z + 1)), np.triu_indices(4, 1)
    a[place if lower else place[::-1]] += 5
    for n in (2, 3):
        for found, expected in zip(
                ours.eigh(cytape.constant(a), b, type=n, lower=lower),
                linalg.eigh(a, b, type=n, lower=lower), strict=True):
            np.testing.assert_allclose(found, expected, 1e-9, 1e-9)


@each("name", ["by index", "general", "polar"])
def test_all_ways(name):
    def f(a):
        return sum(np.sum(x ** 2 * np.arange(x.size).reshape(x.shape))
                   for x in CALLS[name](ours, a))

    def plain(a):
        if name == "polar":
            u, s, vh = np.linalg.svd(a)
            results = u @ vh, vh.T @ (s[:, None] * vh)
        elif name == "general":
            factor = np.linalg.cholesky(squared(a + 1))
            inner = np.linalg.solve(factor, np.linalg.solve(factor, hermitian(a)).T)
            w, v = np.linalg.eigh(inner)
            results = w, np.linalg.solve(factor.T, v) ** 2
        else:
            w, v = np.linalg.eigh(hermitian(a))
            results = w[1:3], v[:, 1:3] ** 2
        return sum(np.sum(x ** 2 * np.arange(x.size).reshape(x.shape)) for x in results)

    ways.check(f, plain, A, ways=ways.OF_KNOWN_EXTENTS, rtol=1e-7, atol=1e-8)


def test_equal_values():
    check_grads(ours.polar, [np.diag([1.0, 1.0, -1.0])])
    check_grads(
        lambda a: np.sum(ours.eigvalsh(hermitian(a), squared(a)) ** 2), [np.eye(3)], order=1)

    def projection(a, b):  # unique, though the two vectors are not
        v = ours.eigh(hermitian(a), squared(b))[1][:, :2]
        return v @ v.T

    check_grads(projection, [np.diag([1.0, 1.0, 4.0]), np.eye(3)], order=1)


@each("name", ["null_space", "orth"])
def test_bases_of_subspaces_say_why_they_have_no_derivative(name):
    a = np.ones((2, 3))
    np.testing.assert_array_equal(getattr(ours, name)(a), getattr(linalg, name)(a))
    with pytest.raises(NotDifferentiableError, match=f"{name} .*a basis of a subspace.*pinv"):
        getattr(ours, name)(cytape.constant(a))


@each("name", ["schur", "hessenberg"])
def test_forms_that_are_not_unique_are_scipys_of_arrays_only(name):
    np.testing.assert_array_equal(getattr(ours, name)(A), getattr(linalg, name)(A))
    with pytest.raises(NotDifferentiableError, match=f"{name} has no derivative.*eig"):
        getattr(ours, name)(cytape.constant(A))


def test_errors():
    t = cytape.constant(A)
    for call in (lambda: ours.eigh(t, A, subset_by_index=[0, 1]),
                 lambda: ours.eig(t, A), lambda: ours.eig(t, left=True),
                 lambda: ours.eigvals(t, homogeneous_eigvals=True)):
        with pytest.raises(NotDifferentiableError, match="eig"):
            call()
    for call, message in [
            (lambda: ours.eigh(t, subset_by_index=[0, 1], subset_by_value=[0, 1]), "subset"),
            (lambda: ours.eigh(t, A, type=4), "type"),
            (lambda: ours.eigh(t, np.eye(2), type=2), "wrong b dimensions"),
            (lambda: ours.eigh(t[:2], A, type=3), 'expected square "a"'),
            (lambda: ours.eigh(t, A, type=2, driver="x"), "unknown"),
            (lambda: ours.svd(t, lapack_driver="x"), "lapack_driver"),
            (lambda: ours.polar(t, "x"), "side"), (lambda: ours.eigh(t * np.nan), "infs or NaNs"),
            (lambda: ours.svd(t * np.nan), "infs or NaNs")]:
        with pytest.raises(ValueError, match=message):
            call()
