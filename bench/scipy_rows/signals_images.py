"""``python -m bench.scipy_rows.signals_images``: gradients of signals and images over the calls.

A gradient includes the call itself, and is taken with respect to all arrays that are listed.
"""

import sys

import numpy as np
import scipy.fft
import scipy.ndimage
import scipy.signal

import cytape
import cytape.scipy.fft
import cytape.scipy.ndimage
import cytape.scipy.signal
from bench.timing import Effort, Program, best_seconds

LIMIT = 4.0  # times SciPy's call


def rows():
    """Return the name, the function of a library and the arrays of each row."""
    rng = np.random.default_rng(0)
    signal, signals = rng.normal(size=100_000), rng.normal(size=(200, 1000))
    image, weights = rng.normal(size=(256, 256)), rng.normal(size=(5, 5))
    b, a = scipy.signal.butter(4, 0.2)
    sos = scipy.signal.butter(8, 0.2, output="sos")
    points = rng.uniform(0, 255, (2, 20_000))
    matrix, offset = np.array([[0.98, 0.1], [-0.1, 0.98]]), np.array([3.0, 5.0])
    taps, spectra = rng.normal(size=100), scipy.signal.stft(signal)[2]
    return [
        ("fft.rfft, abs", lambda s, x: abs(s.fft.rfft(x)), [signal]),
        ("fft.dct", lambda s, x: s.fft.dct(x), [signal]),
        ("signal.convolve, 1e5 x 100", lambda s, x, h: s.signal.convolve(x, h), [signal, taps]),
        ("signal.fftconvolve, 256^2 x 256^2",
         lambda s, x, y: s.signal.fftconvolve(x, y, "same"), [image, image]),
        ("signal.lfilter in b, a, x, order 4, 1e5", lambda s, b, a, x: s.signal.lfilter(b, a, x),
         [b, a, signal]),
        ("signal.lfilter in x, 200 x 1000", lambda s, x: s.signal.lfilter(b, a, x), [signals]),
        ("signal.sosfilt in x, order 8, 1e5", lambda s, x: s.signal.sosfilt(sos, x), [signal]),
        ("signal.filtfilt in x, 1e5", lambda s, x: s.signal.filtfilt(b, a, x), [signal]),
        ("signal.resample, 1e5 to 5e4", lambda s, x: s.signal.resample(x, 50_000), [signal]),
        ("signal.resample_poly, 2 / 3", lambda s, x: s.signal.resample_poly(x, 2, 3), [signal]),
        ("signal.hilbert, abs", lambda s, x: abs(s.signal.hilbert(x)), [signal]),
        ("signal.detrend", lambda s, x: s.signal.detrend(x), [signals]),
        ("signal.savgol_filter", lambda s, x: s.signal.savgol_filter(x, 11, 3), [signals]),
        ("signal.stft, abs", lambda s, x: abs(s.signal.stft(x)[2]), [signal]),
        ("signal.istft", lambda s, z: s.signal.istft(z)[1], [spectra]),
        ("signal.welch", lambda s, x: s.signal.welch(x)[1], [signal]),
        ("ndimage.correlate, 256^2 x 5^2", lambda s, x, w: s.ndimage.correlate(x, w),
         [image, weights]),
        ("ndimage.gaussian_filter, 256^2", lambda s, x: s.ndimage.gaussian_filter(x, 2.0),
         [image]),
        ("ndimage.uniform_filter, 256^2", lambda s, x: s.ndimage.uniform_filter(x, 9), [image]),
        ("ndimage.map_coordinates, order 1, 2e4",
         lambda s, x, p: s.ndimage.map_coordinates(x, p, order=1), [image, points]),
        ("ndimage.map_coordinates, order 3, 2e4",
         lambda s, x, p: s.ndimage.map_coordinates(x, p, order=3), [image, points]),
        ("ndimage.affine_transform, 256^2",
         lambda s, x, m, o: s.ndimage.affine_transform(x, m, o), [image, matrix, offset]),
        ("ndimage.zoom by 2, 256^2", lambda s, x: s.ndimage.zoom(x, 2), [image]),
        ("ndimage.shift, 256^2", lambda s, x: s.ndimage.shift(x, (0.5, 1.5)), [image]),
    ]


def main(smoke=False):
    effort = Effort(1, 0.0) if smoke else Effort(5, 0.1)
    print(f"{'gradient and call, over the call of SciPy':45} {'ms':>8} {'ratio':>6}  limit {LIMIT}")
    ratios = {}
    for name, function, arrays in rows():
        gradient = cytape.grad(lambda *arrays, f=function: np.sum(f(cytape.scipy, *arrays)),
                               tuple(range(len(arrays))))
        plain, ours = best_seconds([
            Program(lambda _, f=function, xs=arrays: f(scipy, *xs)),
            Program(lambda _, f=gradient, xs=arrays: f(*xs))], effort)
        ratios[name] = ours / plain
        print(f"{name:45} {1000 * ours:8.2f} {ours / plain:6.2f}"
              + ("  above the limit" if ours > LIMIT * plain else ""), flush=True)
    return ratios


if __name__ == "__main__":
    main("--smoke" in sys.argv)
