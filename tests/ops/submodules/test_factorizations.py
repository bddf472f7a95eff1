"""The factors of Cholesky and QR: what the op table does not state."""

import numpy as np
import pytest

import cytape
from cytape.errors import DetachedError
from cytape.ops.submodules import factorizations
from cytape.testing import check_grads
from tests.cases import each
from tests.ways import taped, watching

A = np.array([[2.0, 1.0], [0.5, 3.0], [1.0, -1.0]])
H = np.array([[4.0, 1.0 + 1.0j], [1.0 - 1.0j, 3.0]])


@each("upper", [False, True])
def test_one_triangle_is_read_and_the_gradient_is_hermitian(upper):
    unread = H + np.array([[0, 0], [9, 0]] if upper else [[0, 9], [0, 0]])
    x = cytape.constant(unread)
    tape, y = taped(lambda x: np.linalg.cholesky(x, upper=upper), x)
    np.testing.assert_array_equal(y, np.linalg.cholesky(unread, upper=upper))
    gradient = tape.gradient(y, x).numpy()
    np.testing.assert_allclose(gradient, gradient.conj().T, rtol=1e-14)


def test_of_a_tangent_the_hermitian_part_counts():
    t = np.array([[1.0, 5.0], [3.0, 2.0j]])
    part = (t + t.conj().T) / 2
    for upper in (False, True):
        def factor(a, upper=upper):
            return np.linalg.cholesky(a, upper=upper)

        tangents = [cytape.jvp(factor, (H,), (tangent,))[1] for tangent in (t, part)]
        np.testing.assert_allclose(*tangents, rtol=1e-14)


def test_the_mode_raw_has_no_derivative():
    x = cytape.constant(A)
    for found, expected in zip(np.linalg.qr(x, "raw"), np.linalg.qr(A, "raw"), strict=True):
        np.testing.assert_array_equal(found, expected)
    with watching(x):
        with pytest.raises(DetachedError):
            np.linalg.qr(x, "raw")


@each("a", [np.zeros((3, 2)), np.arange(12.0).reshape(3, 4) / 7])
@each("differentiate", [cytape.grad, cytape.jacfwd, lambda f: cytape.function(cytape.grad(f))])
def test_the_factors_of_a_matrix_without_full_rank_have_no_derivative(a, differentiate):
    """Also if R has a rounding error in place of 0."""
    with pytest.raises(np.linalg.LinAlgError, match="Singular"):
        differentiate(lambda a: np.sum(np.linalg.qr(a).R))(a)


def test_columns_of_any_size_are_independent():
    check_grads(lambda a: np.linalg.qr(a).Q, [np.array([[3.0, 1.0], [1.0, 2.0]])], order=1)
    a, scale = np.array([[3.0, 1.0], [1.0, 2.0]]), np.array([1.0, 1e-20])
    found = cytape.grad(lambda a: np.sum(np.linalg.qr(a * scale).Q * np.arange(4.0).reshape(2, 2)))
    expected = cytape.grad(lambda a: np.sum(np.linalg.qr(a).Q * np.arange(4.0).reshape(2, 2)))
    np.testing.assert_allclose(found(a), expected(a), atol=1e-14)


@each(of=["Q", "R"], shape=[(3, 2), (2, 3), (2, 2)], mode=["reduced", "complete"])
def test_one_of_both_factors(of, shape, mode):
    x = np.random.default_rng(0).normal(size=shape)

    def f(a):
        factor = getattr(np.linalg.qr(a, mode), of)
        return factor[:, :2] if of == "Q" else factor

    check_grads(f, [x])
    signature = [cytape.Spec.of((None, None), float)]
    gradient = cytape.function(cytape.grad(lambda a: np.sum(f(a))), input_signature=signature)
    np.testing.assert_allclose(gradient(x), cytape.grad(lambda a: np.sum(f(a)))(x), rtol=1e-12)


def test_factors_without_influence_have_no_gradient():
    x = cytape.constant(A)
    with watching(x) as tape:
        np.linalg.qr(x)
        y = np.sum(x)
    np.testing.assert_array_equal(tape.gradient(y, x), np.ones((3, 2)))


def test_results_keep_numpys_names():
    assert type(np.linalg.qr(cytape.constant(A))) is type(np.linalg.qr(A))
    assert cytape.function(np.linalg.qr)(A).R.shape == (2, 2)


@each(upper=[False, True], shape=[(65, 65), (130, 130), (2, 70, 70)], dtype=[float, complex])
def test_gradient_of_cholesky_by_blocks(upper, shape, dtype, monkeypatch):
    rng = np.random.default_rng(0)
    a, weights = rng.normal(size=(2, *shape))
    if dtype is complex:
        a, weights = a + 1j * a[..., ::-1], weights * (1 + 2j)
    a = a @ a.conj().swapaxes(-1, -2) + shape[-1] * np.eye(shape[-1])

    def loss(x):
        return np.sum(np.real(np.linalg.cholesky(x, upper=upper) * weights))

    with monkeypatch.context() as patch:
        patch.setattr(factorizations, "AT_ONCE", 64)
        by_blocks = cytape.grad(loss)(a)
        patch.setattr(factorizations, "BLOCK", 1000)
        at_once = cytape.grad(loss)(a)
    np.testing.assert_allclose(by_blocks, at_once, 1e-12, 1e-14)
    assert not np.array_equal(by_blocks, at_once)


@each("n", [3, 33, 70])
def test_the_gradient_of_cholesky_reads_one_triangle(n):
    lower, g = np.random.default_rng(0).normal(size=(2, n, n))
    lower += n * np.eye(n)
    np.testing.assert_allclose(
        factorizations.cholesky_back_op(lower, g),
        factorizations.cholesky_back_op(np.tril(lower), g), 1e-12, 1e-14)


@each(n=[3, 70], dtype=[float, complex], upper=[False, True])
def test_no_gradient_of_the_zeros_of_cholesky_is_read(n, dtype, upper):
    ones = np.tri(n).T if upper else np.tri(n)
    a = (ones @ ones.T + n * np.eye(n)).astype(dtype)

    def gradient(weights):
        return cytape.grad(lambda x: np.sum(np.real(np.linalg.cholesky(x, upper=upper)) * weights))

    expected, found = gradient(ones)(a), gradient(np.where(ones, 1, np.nan))
    traced = cytape.function(found, input_signature=[cytape.Spec.of((None, None), dtype)])
    for result in (found(a), traced(a), cytape.vmap(found)(a[None])[0]):
        np.testing.assert_allclose(result, expected, 1e-9, 1e-12)
    x = cytape.constant(a)
    tape, y = taped(found, x)
    np.testing.assert_allclose(y, expected, 1e-9, 1e-12)
    assert np.isfinite(tape.gradient(y, x)).all()
