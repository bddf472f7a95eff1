"""Fourier transforms: what the op table does not state."""

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from cytape.ops.submodules import fourier
from cytape.testing import check_grads
from tests import ways
from tests.cases import each, sampled

ALONG_ONE = ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
ALONG_MANY = ("fftn", "ifftn", "rfftn", "irfftn", "fft2", "ifft2", "rfft2", "irfft2")
X = np.random.default_rng(0).normal(size=(3, 4))


def test_every_function_of_arrays_is_there():
    assert set(fourier.__all__) == set(np.fft.__all__) - {"fftfreq", "rfftfreq"}


@each("name", ["fftn", "irfftn"])
def test_lengths_want_axes_and_no_none(name):
    for options in ({"s": (2, 3)}, {"s": (2, None), "axes": (0, 1)}):
        found = []
        for x in (X, cytape.constant(X)):
            with pytest.warns(DeprecationWarning, match="NumPy 2.0") as notes:
                found.append(np.asarray(getattr(np.fft, name)(x, **options)))
            assert len(notes) == 1
        np.testing.assert_allclose(*found, rtol=1e-14)


@sampled(4, name=ALONG_ONE,
         norm=[None, "backward", "ortho", "forward"],
         n=[None, 1, 2, 3, 4, 5, 6, 9])
def test_there_is_no_length_and_no_factor_without_its_derivative(name, norm, n):
    def f(x):
        return getattr(np.fft, name)(x, n, 0, norm)

    for x in (X, X.T):
        check_grads(f, [x], order=1)
    check_grads(lambda x: f(x[:, ::2][::-1]), [X], order=1)


@each(name=ALONG_ONE, n=[None, 3, 8], dtype=["float64", "complex128"])
def test_unknown_extents(name, n, dtype):
    if dtype == "complex128" and name in ("rfft", "ihfft"):
        return
    x = X.astype(dtype)
    x += 0.5j * X[::-1] if dtype == "complex128" else 0

    def f(x):
        y = getattr(np.fft, name)(x, n, axis=0)
        return np.sum(np.real(y) ** 2 * np.imag(1j * y + y) + np.abs(y) ** 2)

    def derivatives(x):
        return f(x), cytape.grad(f)(x), cytape.jvp(f, (x,), (x + 1,))[1]

    run = cytape.function(derivatives, input_signature=[cytape.Spec.of((None, None), dtype)])
    for found, expected in zip(run(x), derivatives(x), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-11)


@each(axes=[None, 0, -1, (0,), (1, 0), [1]], shape=[(3, 4), (3, 5)])
def test_shifts_undo_each_other(axes, shape):
    x, weights = np.random.default_rng(1).normal(size=(2, *shape))
    there = np.fft.fftshift(cytape.constant(x), axes)
    np.testing.assert_array_equal(there, np.fft.fftshift(x, axes))
    np.testing.assert_array_equal(np.fft.ifftshift(there, axes), x)
    gradient = cytape.grad(lambda x: np.sum(np.fft.fftshift(x, axes) * weights))(x)
    np.testing.assert_array_equal(gradient, np.fft.ifftshift(weights, axes))


def test_frequencies_are_numpys_and_move_with_the_spacing():
    assert cnp.fft.fftfreq is np.fft.fftfreq and cnp.fft.rfftfreq is np.fft.rfftfreq
    x = cytape.constant(0.5)
    assert float(ways.gradient(lambda x: np.fft.fftfreq(4, x)[1], x)) == -1.0


def test_a_filter():
    """A product of spectra is a convolution, whose gradient is a correlation."""
    signal, kernel = X.ravel(), np.array([1.0, -2.0, 0.5])

    def smooth(kernel):
        return np.fft.irfft(np.fft.rfft(signal, 14) * np.fft.rfft(kernel, 14), 14)

    np.testing.assert_allclose(smooth(cytape.constant(kernel)), np.convolve(signal, kernel),
                               atol=1e-14)
    check_grads(lambda kernel: smooth(kernel) ** 2, [kernel])
