"""Fourier transforms by SciPy's signatures: values, gradients, dtypes, errors."""

import numpy as np
import pytest

import cytape
from cytape.errors import DetachedError
from tests.cases import each
from tests.ways import check

scipy_fft = pytest.importorskip("scipy.fft")
fft = pytest.importorskip("cytape.scipy.fft")
X = np.random.default_rng(0).normal(size=(3, 4, 5))
ONE = ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"]
SEVERAL = [name + end for name in ONE for end in ("n", "2")]


def agree_with_scipy(name, options):
    theirs, ours = getattr(scipy_fft, name), getattr(fft, name)
    expected = theirs(X, **options)
    found = ours(cytape.constant(X), **options)
    np.testing.assert_allclose(found, expected, 1e-12, 1e-12)
    weights, direction = np.linspace(1, 2, expected.size).reshape(expected.shape), np.sqrt(X**2)
    slopes = cytape.grad(lambda x: np.sum(np.real(ours(x, **options)) * weights))(X)
    np.testing.assert_allclose(
        np.sum(slopes * direction), np.sum(np.real(theirs(direction, **options)) * weights), 1e-10)


@each(name=ONE, options=[{}, {"n": 6, "axis": 1}, {"norm": "ortho", "n": 3},
                         {"norm": "forward", "axis": 0, "overwrite_x": True, "workers": 1}])
def test_one_axis(name, options):
    agree_with_scipy(name, options)


@each(name=SEVERAL, options=[{}, {"s": (3, 6), "axes": (2, 0)}, {"norm": "ortho", "s": (3, 4)},
                             {"axes": (0, 1), "norm": "forward"}, {"s": (3, -1), "axes": (0, 1)}])
def test_several_axes(name, options):
    agree_with_scipy(name, options)


@each(name=ONE, dtype=["float32", "float16", "int32", "complex64"])
def test_dtypes_are_scipys(name, dtype):
    x = X.astype(dtype)
    try:
        expected = getattr(scipy_fft, name)(x).dtype
    except TypeError:
        with pytest.raises(TypeError, match="real sequence"):
            getattr(fft, name)(cytape.constant(x))
        return
    assert getattr(fft, name)(cytape.constant(x)).dtype == expected


def test_arrays_are_left_to_scipy():
    for name in (*ONE, *SEVERAL, "fftshift"):
        np.testing.assert_array_equal(getattr(fft, name)(X), getattr(scipy_fft, name)(X))
    assert fft.next_fast_len is scipy_fft.next_fast_len and "dct" in dir(fft)


def test_all_ways_agree():
    check(lambda x: np.sum(np.abs(fft.rfftn(x))**4),
          lambda x: np.sum(np.abs(np.fft.rfftn(x))**4), X[0], rtol=1e-8)


@each("call", [lambda x: fft.fft(x, n=0), lambda x: fft.rfft(x * 1j), lambda x: fft.fft(x, norm=2),
               lambda x: fft.fftn(x, s=(1, 2, 3, 4)), lambda x: fft.fftn(x, axes=(0, 0)),
               lambda x: fft.fft(x, workers=0), lambda x: fft.fft2(x, s=(0, 2)),
               lambda x: fft.rfftn(x, axes=()), lambda x: fft.fft(x, plan=1),
               lambda x: fft.fft(x, axis=3), lambda x: fft.fft2(x[0, 0])])
def test_errors_are_scipys(call):
    with pytest.raises(Exception) as expected:
        call(X)
    with pytest.raises(expected.type):
        call(cytape.constant(X))


@each("name", ["fft", "dct"])
def test_scipys_functions_name_those_of_cytape(name):
    with pytest.raises(DetachedError, match=rf"Call cytape.scipy.fft.{name}, which has"):
        cytape.grad(lambda x: np.sum(np.abs(getattr(scipy_fft, name)(x))))(X)
