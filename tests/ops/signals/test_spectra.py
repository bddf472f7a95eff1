"""Spectra of segments and responses of filters: values and gradients against SciPy's."""

import warnings

import numpy as np
import pytest

import cytape
from cytape.testing import check_grads
from tests.cases import each
from tests.ways import OF_KNOWN_EXTENTS, check

scipy_signal = pytest.importorskip("scipy.signal")
signal = pytest.importorskip("cytape.scipy.signal")
X = np.random.default_rng(0).normal(size=(2, 60))
SPECTRA = scipy_signal.stft(X, nperseg=16)[2]


def agree_with_scipy(function, arrays, has_kinks=False):
    """Compare all results of a function of a library; check the gradients of the last."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for dtype, tolerance in ((None, 1e-9), ("float32", 1e-4)):
            given = [x if dtype is None or x.dtype != float else x.astype(dtype) for x in arrays]
            expected = function(scipy_signal, *given)
            found = function(signal, *map(cytape.constant, given))
            for one, other in zip(found, expected, strict=True):
                assert np.asarray(one).dtype == np.asarray(other).dtype
                np.testing.assert_allclose(np.asarray(one), other, tolerance, tolerance)
        if has_kinks:
            return

        def total(*arrays):
            y = function(signal, *arrays)[-1]
            weights = np.arange(1.0, y.size + 1).reshape(y.shape)
            return np.sum(np.real(y * (weights - 1j * weights[::-1])))

        check_grads(total, arrays, order=1)


@each("options", [
    {"nperseg": 16}, {"nperseg": 16, "noverlap": 5}, {"nperseg": 15, "nfft": 20},
    {"window": np.hamming(12), "nperseg": 12},
    {"nperseg": 16, "boundary": None, "padded": False}, {"nperseg": 16, "boundary": "even"},
    {"nperseg": 16, "boundary": "odd"}, {"nperseg": 9, "boundary": "constant", "detrend": "linear"},
    {"nperseg": 16, "scaling": "psd", "fs": 3.0}, {"nperseg": 1000},
    {"nperseg": 8, "return_onesided": False}])
def test_short_times(options):
    agree_with_scipy(lambda library, x: library.stft(x, **options), [X])
    agree_with_scipy(lambda library, x: library.stft(x + 1j * x[::-1], **options), [X])


def test_axes():
    agree_with_scipy(lambda library, x: library.stft(x.T, nperseg=16, axis=0), [X])
    agree_with_scipy(lambda library, x: library.welch(x.T, nperseg=16, axis=0), [X])
    agree_with_scipy(lambda library, z: library.istft(
        np.moveaxis(z, (1, 2), (0, 1)), time_axis=1, freq_axis=0), [SPECTRA])
    agree_with_scipy(lambda library, z: library.istft(
        np.moveaxis(z, (1, 2), (1, 0)), time_axis=0, freq_axis=1), [SPECTRA])


@each("options", [{}, {"noverlap": 9, "nperseg": 16}, {"boundary": False}, {"scaling": "psd"},
                  {"input_onesided": False, "nperseg": 8}, {"nperseg": 12, "nfft": 16}])
def test_inverse(options):
    agree_with_scipy(lambda library, z: library.istft(z, **options), [SPECTRA])


@each("options", [{}, {"nperseg": 16}, {"nperseg": 16, "noverlap": 5, "detrend": False},
                  {"nperseg": 15, "nfft": 20, "scaling": "spectrum"},
                  {"nperseg": 16, "return_onesided": False, "fs": 2.0}])
def test_densities(options):
    agree_with_scipy(lambda library, x: library.welch(x, **options), [X])
    agree_with_scipy(lambda library, x: library.csd(x[0], x[1], **options), [X])
    agree_with_scipy(lambda library, x: library.csd(x[0], x[1, :40], **options), [X])


@each("dtype", ["uint8", "bool", "int64"])
def test_integers_have_scipys_dtypes(dtype):
    x = np.abs(9 * X).astype(dtype)
    for name in ("welch", "stft"):
        expected = getattr(scipy_signal, name)(x, nperseg=16)[-1]
        found = getattr(signal, name)(cytape.constant(x), nperseg=16)[-1]
        assert found.dtype == expected.dtype
        np.testing.assert_allclose(found, expected, 1e-4, 1e-4)


def test_medians():
    for function in (
            lambda library, x: library.welch(x, nperseg=16, average="median"),
            lambda library, x: library.csd(x[0], x[1], nperseg=16, average="median")):
        agree_with_scipy(function, [X], has_kinks=True)
    slope = cytape.grad(lambda x: signal.welch(x, nperseg=16, average="median")[1][3])(X[0])
    step = 1e-6 * X[1]
    values = [scipy_signal.welch(x, nperseg=16, average="median")[1][3]
              for x in (X[0] + step, X[0] - step)]
    np.testing.assert_allclose(slope @ X[1], (values[0] - values[1]) / 2e-6, 1e-7)


@each("options", [{}, {"nfft": 50}, {"nfft": 128}, {"axis": 0, "window": None},
                  {"window": "hann", "detrend": "linear", "scaling": "spectrum"}])
def test_periodograms(options):
    agree_with_scipy(lambda library, x: library.periodogram(x, **options), [X])


@each("mode", ["psd", "complex", "magnitude", "angle", "phase"])
def test_spectrograms(mode):
    agree_with_scipy(lambda library, x: library.spectrogram(x, nperseg=16, mode=mode, detrend=False
                                                            ), [X], mode in ("angle", "phase"))


def test_coherence():
    agree_with_scipy(lambda library, x: library.coherence(x[0], x[1], nperseg=16), [X])


@each("options", [{}, {"worN": 7, "whole": True}, {"worN": [0.1, 1.0], "fs": 3.0},
                  {"worN": 5, "include_nyquist": True}])
def test_responses(options):
    b, a = np.array([0.5, 1.0, -0.3, 0.2]), np.array([1.0, 0.3, -0.2])
    found = signal.freqz(cytape.constant(b), a, **options)
    for one, other in zip(found, scipy_signal.freqz(b, a, **options), strict=True):
        np.testing.assert_allclose(one, other, 1e-12)
    if options:
        check_grads(lambda b, a: np.real(signal.freqz(b, a, **options)[1]), [b, a])
    sos = scipy_signal.butter(4, 0.3, output="sos")
    np.testing.assert_allclose(
        signal.freqz_sos(cytape.constant(sos))[1], scipy_signal.freqz_sos(sos)[1], 1e-9, 1e-12)


def test_all_ways_agree():
    def by_matrix(x):
        segments = np.stack([x[:4], x[2:6], x[4:]])
        spectra = np.fft.rfft((segments - np.mean(segments, -1, keepdims=True))
                              * scipy_signal.get_window("hann", 4))
        power = np.abs(spectra)**2 * np.array([1, 2, 1]) / 1.5
        return np.sum(np.mean(power, 0)**2)

    check(lambda x: np.sum(signal.welch(x, nperseg=4)[1]**2), by_matrix, X[0, :8], rtol=1e-8,
          ways=OF_KNOWN_EXTENTS)


@each("call", [lambda x: signal.stft(x, scaling="x"), lambda x: signal.stft(x, boundary="x"),
               lambda x: signal.stft(x, nperseg=8, noverlap=8),
               lambda x: signal.stft(x, nperseg=8, nfft=4), lambda x: signal.stft(x, nperseg=0),
               lambda x: signal.stft(x, window=np.ones(8)),
               lambda x: signal.welch(x, nperseg=8, scaling="x"),
               lambda x: signal.welch(x, nperseg=8, average="x"),
               lambda x: signal.periodogram(x, window=np.ones(7)),
               lambda x: signal.spectrogram(x, mode="x"), lambda x: signal.istft(x[0]),
               lambda x: signal.istft(x, time_axis=0, freq_axis=0),
               lambda x: signal.istft(x, nperseg=8, noverlap=9),
               lambda x: signal.istft(x, scaling="x"), lambda x: signal.freqz_sos(x)])
def test_errors_are_scipys(call):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(Exception) as expected:
            call(X)
        with pytest.raises(expected.type):
            call(cytape.constant(X))


@each("name", ["welch", "periodogram", "stft", "csd", "coherence"])
def test_signals_without_elements(name):
    def call(module, x):
        return getattr(module, name)(*[x] * (2 if name in ("csd", "coherence") else 1))

    for found, expected in zip(
            call(signal, cytape.constant(np.zeros(0))), call(scipy_signal, np.zeros(0)),
            strict=True):
        assert np.shape(found) == np.shape(expected)
    assert cytape.grad(lambda x: np.sum(np.abs(call(signal, x)[-1])))(np.zeros(0)).shape == (0,)


def test_classes_take_arrays_only():
    window = np.hanning(5)
    found, expected = (
        library.ShortTimeFFT(window, 2, 1.0).stft(np.arange(20.0))
        for library in (signal, scipy_signal))
    np.testing.assert_array_equal(found, expected)
    with pytest.raises(TypeError, match="call stft, istft or spectrogram"):
        signal.ShortTimeFFT(cytape.constant(window), 2, 1.0)
