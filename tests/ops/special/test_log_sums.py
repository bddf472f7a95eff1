"""Weighted sums of exponentials at infinite and negative terms."""

import numpy as np
import pytest

import cytape
from cytape.testing import check_grads
from tests.cases import each

special = pytest.importorskip("scipy.special")
ours = pytest.importorskip("cytape.scipy.special")


@each("a, b", [
    ([1.0, 2.0], [1.0, -1.0]), ([1.0, 2.0], [0.0, 0.0]), ([np.inf, 2.0], [0.0, 1.0]),
    ([-np.inf, -np.inf], [1.0, 1.0]), ([1000.0, 1001.0], [2.0, -0.5]), ([3.0], [-1.0])])
@each(return_sign=[False, True])
def test_values_are_scipys(a, b, return_sign):
    with np.errstate(all="ignore"):
        found = ours.logsumexp(cytape.constant(a), b=np.array(b), return_sign=return_sign)
        expected = special.logsumexp(a, b=b, return_sign=return_sign)
    for y, reference in zip(np.atleast_1d(found), np.atleast_1d(expected), strict=True):
        np.testing.assert_allclose(np.asarray(y), reference, 1e-14)


def test_terms_of_weight_zero_have_no_gradient_but_their_weights_do():
    a, b = np.array([np.inf, 0.0]), np.array([0.0, 1.0])
    np.testing.assert_array_equal(cytape.grad(ours.logsumexp)(a, b=b), [0.0, 1.0])
    slopes = cytape.grad(lambda b: ours.logsumexp(np.array([1.0, 0.0]), b=b))(b)
    np.testing.assert_allclose(slopes, [np.e, 1.0])
    single = cytape.constant(np.float32([1000.0, 0.0]))
    assert ours.logsumexp(single, b=np.float32(b)) == 0


@each(dtype=["float32", "float64", "complex64", "complex128", "int64"])
def test_dtypes_are_scipys(dtype):
    x = np.array([1, 2], dtype)
    assert ours.logsumexp(cytape.constant(x)).dtype == special.logsumexp(x).dtype
    for found, expected in zip(
            ours.logsumexp(cytape.constant(x), return_sign=True),
            special.logsumexp(x, return_sign=True), strict=True):
        assert found.dtype == expected.dtype


def test_arrays_are_left_to_scipy():
    x = np.array([[1.0, 2.0]])
    for name in ("logsumexp", "softmax", "log_softmax"):
        np.testing.assert_array_equal(getattr(ours, name)(x), getattr(special, name)(x))


@each(return_sign=[False, True])
@each("b", [None, np.array([0.5, -1.0, 0.0])])
def test_complex_terms(return_sign, b):
    a = np.array([1.0 + 2.0j, 700.0 - 0.5j, 1500.0 + 1.0j])[:2 if b is None else 3]

    def parts(a, b=b):
        found = ours.logsumexp(a, b=b, return_sign=return_sign)
        return np.stack([f(y) for y in (found if return_sign else [found])
                         for f in (np.real, np.imag)])

    np.testing.assert_allclose(parts(cytape.constant(a)), parts(a), 1e-14, 1e-14)
    check_grads(parts, [a])
    if b is not None:
        check_grads(lambda b: parts(a, b), [np.array([0.5, -1.0, 2.0]) * 1j])
