"""Cosine, sine and Hankel transforms: gradients against matrices built by SciPy, and errors."""

import numpy as np
import pytest

import cytape
from tests.cases import each, sampled
from tests.ways import check

scipy_fft = pytest.importorskip("scipy.fft")
fft = pytest.importorskip("cytape.scipy.fft")
X = np.random.default_rng(0).normal(size=(3, 4, 5))


@sampled(6, name=["dct", "idct", "dst", "idst"], type=[1, 2, 3, 4],
         norm=[None, "ortho", "forward"], orthogonalize=[None, True, False], n=[None, 4, 7])
def test_gradient_is_the_transposed_matrix(name, type, norm, orthogonalize, n):
    options = {"type": type, "norm": norm, "orthogonalize": orthogonalize, "n": n}
    matrix = getattr(scipy_fft, name)(np.eye(5), axis=0, **options)
    g = np.arange(1.0, len(matrix) + 1)
    found = cytape.grad(lambda x: np.sum(getattr(fft, name)(x, **options) * g))(X[0, 0])
    np.testing.assert_allclose(found, matrix.T @ g, 1e-12, 1e-12)


@each(name=["dct", "idst"], type=[1, 2, 3], norm=["ortho", None], orthogonalize=[True, False])
def test_complex_numbers_have_the_gradient_of_the_matrix_that_scipy_applies(
        name, type, norm, orthogonalize):
    options = {"type": type, "norm": norm, "orthogonalize": orthogonalize}
    matrix = getattr(scipy_fft, name)(np.eye(5) + 0j, axis=0, **options)
    found = cytape.grad(lambda x: np.sum(np.real(getattr(fft, name)(x, **options))))(X[0, 0] + 0j)
    np.testing.assert_allclose(found, matrix.T @ np.ones(5), 1e-12, 1e-12)


@each(name=["dctn", "idctn", "dstn", "idstn"],
      options=[{}, {"axes": (1, 0)}, {"s": (3, 4), "axes": (0, 2)}, {"s": (3, 4)}, {"type": 1}])
def test_several_axes(name, options):
    found = getattr(fft, name)(cytape.constant(X), **options)
    np.testing.assert_allclose(found, getattr(scipy_fft, name)(X, **options), 1e-12, 1e-12)


def test_hankel_transforms_invert_each_other():
    x = cytape.constant(X)
    options = {"dln": 0.1, "mu": 0.5, "offset": 0.2}
    np.testing.assert_allclose(fft.ifht(fft.fht(x, **options), **options), X, 1e-9)


@each(name=["fht", "ifht"], bias=[0.0, 0.2])
def test_dtypes_of_hankel_transforms(name, bias):
    x = X.astype("f4")
    expected = getattr(scipy_fft, name)(x, 0.1, 0.5, bias=bias)
    for trace in (lambda f: f, cytape.function):
        found = trace(lambda x: getattr(fft, name)(x, 0.1, 0.5, bias=bias))(cytape.constant(x))
        assert found.dtype == expected.dtype
        np.testing.assert_allclose(found, expected, 1e-6)


@each("name", ["dct", "idst", "dctn"])
def test_all_ways_agree(name):
    function, theirs = getattr(fft, name), getattr(scipy_fft, name)
    matrix = np.stack([theirs(row.reshape(2, 3)).ravel() for row in np.eye(6)], -1)
    check(lambda x: np.sum(function(x)**3), lambda x: np.sum((matrix @ x.reshape(6))**3),
          X[0, :2, :3], rtol=1e-8)


@each("call", [lambda x: fft.dct(x, type=5), lambda x: fft.dct(x, norm="x"),
               lambda x: fft.dct(x, n=0), lambda x: fft.dctn(x, s=(1, 2, 3, 4)),
               lambda x: fft.dctn(x, axes=(0, 0)), lambda x: fft.dct(x, workers=0),
               lambda x: fft.dct(x[..., :1], type=1), lambda x: fft.dct(x, axis=3)])
def test_errors_are_scipys(call):
    with pytest.raises(Exception) as expected:
        call(X)
    with pytest.raises(expected.type):
        call(cytape.constant(X))
