"""Polynomials: leading zeros, roots, errors."""

import warnings

import numpy as np
import pytest

import cytape
from cytape.errors import SymbolicTensorError
from tests.cases import each

P = np.array([0.0, 0.0, 1.0, -3.0, 2.0])


def test_conjugate_roots_make_real_polynomials():
    z = np.array([1 + 2j, 1 - 2j])
    assert np.poly(cytape.constant(z)).dtype == np.poly(z).dtype == np.float64


@each("dtype", ["float16", "float32", "float64", "int8", "complex64"])
def test_polynomials_of_roots_have_numpys_dtype(dtype):
    zeros = np.array([1, 2], dtype)
    assert np.poly(cytape.constant(zeros)).dtype == np.poly(zeros).dtype


def test_a_double_root_has_no_derivative():
    with np.errstate(all="ignore"):
        gradient = cytape.grad(lambda p: np.roots(p)[0])(np.array([1.0, 0.0, 0.0]))
    assert not np.isfinite(gradient).all()


@each("p", [[1, 2, 3, 1j], [0, 0, 1, 2], [2, 1j, 1, 0], [0, 0, 1j, 0]])
def test_roots_of_complex_coefficients_in_functions(p):
    def size(p):
        return np.sum(np.abs(np.roots(p)) ** 3)

    p, t = np.array(p, complex), np.array([0.3j, 1.0, 0.2, -1.0])
    gradient = cytape.grad(size)
    for f in (np.roots, size, gradient, lambda p: cytape.jvp(size, (p,), (t,))[1],
              lambda p: cytape.jvp(gradient, (p,), (t,))[1]):
        np.testing.assert_allclose(cytape.function(f)(p), f(p), 1e-12, 1e-12)


def test_roots_of_zero_move_with_the_last_coefficient():
    p = np.array([2.0, 4.0, 0.0])
    found = cytape.grad(lambda p: np.max(np.roots(p)))(p)
    np.testing.assert_allclose(found, [0, 0, -0.25], atol=1e-15)


def test_covariances_of_several_columns_are_none_where_the_rank_is_not_full():
    x, y = np.arange(4.0), np.arange(8.0).reshape(4, 2) ** 2

    def covariances(x, y, rcond):
        return np.polyfit(x, y, 2, cov=True, rcond=rcond)[1]

    f = cytape.function(covariances)
    for rcond, shape in (1e-9, (3, 3, 2)), (0.5, (3, 3, 0)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", np.exceptions.RankWarning)
            expected = covariances(x, y, rcond)
            found = covariances(cytape.constant(x), y, rcond)
        assert found.shape == f(x, y, rcond).shape == expected.shape == shape
        np.testing.assert_allclose(found, expected, 1e-9, 1e-12)
        np.testing.assert_allclose(f(x, y, rcond), expected, 1e-9, 1e-12)


def test_how_many_coefficients_there_are_must_be_known():
    f = cytape.function(np.polyder, input_signature=[cytape.Spec.of((None,), float)])
    with pytest.raises(SymbolicTensorError, match="polyder: how many coefficients"):
        f(P)


@pytest.mark.filterwarnings("ignore:Polyfit may be poorly conditioned")
@each("x", [np.arange(5.0), np.array([1.0, 1.0, 2.0, 2.0])])
@each("weights", [None, np.array([1.0, 2.0, 0.5, 1.0, 3.0])])
def test_fits_have_the_gradients_of_their_traces(x, weights):
    """Eager, what a fit is scaled by stands still where the rank is full; in a graph it moves."""
    y, w = np.sin(x), weights if weights is None else weights[:len(x)]

    def loss(x, y):
        return np.sum(np.polyfit(x, y, 2, w=w) ** 2)

    found = cytape.grad(loss, (0, 1))(x, y)
    expected = cytape.grad(cytape.function(loss), (0, 1))(x, y)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, 1e-9, 1e-9)
