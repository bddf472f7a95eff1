"""Matrices made of vectors, and Toeplitz systems: SciPy's values, derivatives, errors."""

import numpy as np
import pytest

import cytape
from cytape.testing import check_grads
from tests import ways
from tests.cases import each

linalg = pytest.importorskip("scipy.linalg")
ours = pytest.importorskip("cytape.scipy.linalg")

C = np.array([5.0, 0.3, -1.2, 0.7])
R = np.array([0.4, 1.1, -0.6, 0.2])
Z = C + 0.3j * R
B = np.array([[1.0, 2.0], [3.0, -1.0], [0.5, 2.5], [2.0, 1.0]])


def named(name, **options):
    return lambda m, *args: getattr(m, name)(*args, **options)


CASES = {
    "toeplitz": (named("toeplitz"), [C, R[:3]]), "toeplitz of one": (named("toeplitz"), [Z]),
    "toeplitz of stacks": (named("toeplitz"), [np.stack([C, R])]), "hankel": (named("hankel"), [C]),
    "hankel of two": (named("hankel"), [C, R]),
    "circulant": (named("circulant"), [np.stack([C, R])]),
    "companion": (named("companion"), [Z]), "leslie": (named("leslie"), [C, R[:3]]),
    "fiedler": (named("fiedler"), [C]), "khatri_rao": (named("khatri_rao"), [B, B[:3]]),
    "block_diag": (lambda m, a, b: m.block_diag(a, b, [1, 2], a[:0]), [B, C]),
    "diagsvd": (lambda m, s: m.diagsvd(s, 4, 6), [C]),
    **{f"convolution_matrix {mode} {n}": (
        lambda m, a, mode=mode, n=n: m.convolution_matrix(a, n, mode), [C])
       for mode in ("full", "same", "valid") for n in (2, 7)},
    "solve_toeplitz": (named("solve_toeplitz"), [C, B]),
    "solve_toeplitz of two": (lambda m, c, r, b: m.solve_toeplitz((c, r), b), [Z, R, B[:, 0]]),
    "matmul_toeplitz": (lambda m, c, r, b: m.matmul_toeplitz((c, r), b), [C, R[:3], B[:3]]),
    "matmul_toeplitz of one": (named("matmul_toeplitz"), [Z, B[:, 0]]),
    "solve_circulant": (named("solve_circulant"), [C, B]),
    "solve_circulant of axes": (named("solve_circulant", baxis=1, outaxis=1), [Z, B.T])}


@each("case", CASES)
def test_values_and_derivatives(case):
    f, args = CASES[case]
    expected = f(linalg, *args)
    np.testing.assert_array_equal(f(ours, *args), expected)
    found = f(ours, *map(cytape.constant, args))
    assert isinstance(found, cytape.Tensor) and found.dtype == expected.dtype
    np.testing.assert_allclose(found, expected, 1e-12, 1e-13)
    check_grads(lambda *args: f(ours, *args), args, order=1 if case.startswith("conv") else 2)


def test_all_ways():
    ways.check(lambda c: np.sum(ours.solve_toeplitz(c, B) ** 2),
               lambda c: np.sum(np.linalg.solve(ours.toeplitz(c), B) ** 2), C,
               ways=ways.OF_KNOWN_EXTENTS)
    ways.check(lambda c: np.sum(ours.circulant(c)[1] * R) ** 3,
               lambda c: np.sum(np.roll(c[::-1], 2) * R) ** 3, C, ways=ways.OF_KNOWN_EXTENTS)


def test_near_singular_circulant_systems():
    with pytest.raises(np.linalg.LinAlgError, match="near singular"):
        ours.solve_circulant(cytape.constant(np.ones(4)), C)
    c = np.array([1.0, 1, 0, 0])
    np.testing.assert_allclose(
        ours.solve_circulant(cytape.constant(c), C, singular="lstsq"),
        linalg.solve_circulant(c, C, singular="lstsq"), 1e-13)


def test_errors_are_scipys():
    t = cytape.constant
    for call, message in [
            (lambda: ours.companion(t([1.0])), "at least 2"),
            (lambda: ours.companion(t([0.0, 1.0])), "must not be zero"),
            (lambda: ours.leslie(t(C), R), "Incorrect lengths"),
            (lambda: ours.leslie(t([1.0]), np.ones(0)), "at least 1"),
            (lambda: ours.convolution_matrix(t(C), 0), "positive"),
            (lambda: ours.convolution_matrix(t(C), 3, "x"), "mode"),
            (lambda: ours.convolution_matrix(t(np.ones(0)), 3), "at least 1"),
            (lambda: ours.khatri_rao(t(B), B[:, :1]), "number of columns"),
            (lambda: ours.khatri_rao(t(C), B), "two dimensions"),
            (lambda: ours.diagsvd(t(C), 3, 3), "Length of s"),
            (lambda: ours.solve_toeplitz((t(C), R[:2]), B), "same length"),
            (lambda: ours.solve_toeplitz(t(C), B[:2]), "Incompatible"),
            (lambda: ours.solve_toeplitz(t(B), B), "vectors"),
            (lambda: ours.solve_circulant(t(C), B[:2]), "incompatible")]:
        with pytest.raises(ValueError, match=message):
            call()
    with pytest.raises(ValueError, match="must be known"):
        cytape.function(ours.toeplitz, input_signature=[cytape.Spec.of((None,), float)])(C)


def test_singular_circulants_in_functions():
    c, b = np.ones(4), np.array([1.0, 2.0, 3.0, 5.0])
    f = cytape.function(lambda c, b: ours.solve_circulant(c, b, singular="lstsq"))
    np.testing.assert_allclose(f(c, b), linalg.solve_circulant(c, b, singular="lstsq"), 1e-12)
