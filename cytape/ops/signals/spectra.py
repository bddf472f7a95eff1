"""Spectra of segments of signals: Fourier transforms of short times, Welch's method, responses.

A signal is cut into overlapping segments, a view, whose transpose adds overlapping segments up.
"""

from typing import Any

import numpy as np
import scipy.fft
import scipy.signal as signal
from numpy.lib.array_utils import normalize_axis_index
from numpy.lib.stride_tricks import sliding_window_view

from cytape.ops.adjoints.identity_groups import together
from cytape.ops.calls.operands import is_tensor, operand
from cytape.ops.creation import astype
from cytape.ops.elementwise import absolute, conj
from cytape.ops.engine.numpy_wrapper import numpy_function
from cytape.ops.engine.op_kinds import linear, structural
from cytape.ops.reductions import mean
from cytape.ops.shaping import moveaxis, ndim, reshape
from cytape.ops.signals import resampling
from cytape.ops.signals.convolutions import without_influence
from cytape.ops.submodules.fourier import fft_op, irfft_op, rfft_op
from cytape.ops.submodules.matrix_parts import real_dtype
from cytape.tensor.values.spec import symbolic_spec
from cytape.tensor.values.user_warnings import warn

__all__ = [
    "ShortTimeFFT", "coherence", "csd", "freqz", "freqz_sos", "istft", "periodogram", "sosfreqz",
    "spectrogram", "stft", "welch"]


def _segments(x, *, n, step):
    return sliding_window_view(x, n, -1, writeable=x.flags.writeable)[..., ::step, :]


def _joined(segments, *, step, length):
    """Add overlapping segments up."""
    total = np.zeros((*segments.shape[:-2], length), segments.dtype)
    n = segments.shape[-1]
    for i in range(segments.shape[-2]):
        total[..., i * step:i * step + n] += segments[..., i, :]
    return total


segments_op = structural(
    "ScipySignalSegments", _segments, None,
    shape_rule=lambda x, *, n, step: symbolic_spec(
        (*x.shape[:-1], None if x.shape[-1] is None else (x.shape[-1] - n) // step + 1, n),
        x.dtype),
    batch=lambda call: call.again(call.inputs))
joined_op = linear(
    "ScipySignalOverlapAdd", _joined,
    transpose=lambda op, g: NotImplemented if op.input_specs[0].shape[-1] is None else segments_op(
        g, n=op.input_specs[0].shape[-1], step=op.attrs["step"]),
    shape_rule=lambda x, *, step, length: symbolic_spec((*x.shape[:-2], length), x.dtype),
    batch=lambda call: call.again(call.inputs))


def _window(window, n_per_segment, length):
    """Return the weights of a segment, or raise SciPy's errors."""
    if isinstance(window, (str, tuple)):
        n = 256 if n_per_segment is None else int(n_per_segment)
        if n < 1:
            raise ValueError("nperseg must be a positive integer")
        if n > length:
            warn(f"nperseg = {n} is greater than input length  = {length}, using nperseg = "
                 f"{length}")
            n = length
        return signal.get_window(window, n)
    weights = np.asarray(window)
    if weights.ndim != 1:
        raise ValueError("window must be 1-D")
    if len(weights) > length:
        raise ValueError("window is longer than input signal")
    if n_per_segment is not None and n_per_segment != len(weights):
        raise ValueError("value specified for nperseg is different from length of window")
    return weights


def _overlap(n, overlap, default):
    overlap = default if overlap is None else int(overlap)
    if overlap >= n:
        raise ValueError("noverlap must be less than nperseg.")
    return overlap


_EXTENSIONS = {
    "even": {"mode": "reflect"}, "odd": {"mode": "reflect", "reflect_type": "odd"},
    "constant": {"mode": "edge"}, "zeros": {"mode": "constant"}, None: None}


def _spectra(signals, fs, window, nperseg, noverlap, nfft, detrend, return_onesided, scaling,
             boundary=None, padded=False):
    """Return frequencies, times and the scaled spectra of the segments of signals.

    The segments are on the axis before the last.
    """
    if boundary not in _EXTENSIONS:
        raise ValueError(f"Unknown boundary option '{boundary}', must be one of: "
                         f"{list(_EXTENSIONS)}")
    window = _window(window, nperseg, max(x.shape[-1] for x in signals))
    n = len(window)
    nfft = n if nfft is None else int(nfft)
    if nfft < n:
        raise ValueError("nfft must be greater than or equal to nperseg.")
    step = n - _overlap(n, noverlap, n // 2)
    is_complex = any(x.dtype.kind == "c" for x in signals)
    window = window.astype(real_dtype(np.result_type(*[x.dtype for x in signals], np.complex64)))
    if scaling == "density":
        scale = 1 / (fs * np.sum(window * window))
    elif scaling == "spectrum":
        scale = 1 / np.sum(window)**2
    else:
        raise ValueError(f"Unknown scaling: {scaling!r}")
    if is_complex and return_onesided:
        warn("Input data is complex, switching to return_onesided=False")
    one_sided = return_onesided and not is_complex
    signals = [x if x.dtype.kind in "fc" else astype(x, window.dtype) for x in signals]
    spectra = []
    for x in signals:
        if boundary is not None and n // 2:
            x = np.pad(x, [*[(0, 0)] * (ndim(x) - 1), (n // 2, n // 2)], **_EXTENSIONS[boundary])
        if padded:
            more = (-(x.shape[-1] - n) % step) % n
            x = np.pad(x, [*[(0, 0)] * (ndim(x) - 1), (0, more)])
        length = x.shape[-1]
        segments = segments_op(x, n=n, step=step)
        if callable(detrend):
            segments = detrend(segments)
        elif detrend:
            segments = resampling.detrend(segments, type=detrend)
        segments = segments * (window * np.asarray(np.sqrt(scale), window.dtype))
        last = ndim(segments) - 1
        spectra.append(
            rfft_op(segments, n=nfft, axis=last, norm=None) if one_sided else
            fft_op(segments, n=nfft, axis=last, norm=None, inverse=False))
    frequencies = (scipy.fft.rfftfreq if one_sided else scipy.fft.fftfreq)(nfft, 1 / fs)
    times = np.arange(n / 2, length - n / 2 + 1, step) / float(fs)
    if boundary is not None:
        times = times - n / 2 / fs
    return frequencies, times, spectra, _doubled(nfft, window.dtype) if one_sided else None


def _doubled(nfft, dtype):
    """Return the numbers of frequencies that those of half a spectrum stand for."""
    factors = np.full(nfft // 2 + 1, 2, dtype)
    factors[0] = 1
    if nfft % 2 == 0:
        factors[-1] = 1
    return factors


def _powers(spectra, factors):
    """Return products of two spectra, or the squares of one."""
    if len(spectra) == 1:
        power = spectra[0].real**2 + spectra[0].imag**2
    else:
        power = conj(spectra[0]) * spectra[1]
    return power if factors is None else power * factors


def _along_last(x, axis, function):
    x = operand(x)
    axis = normalize_axis_index(axis, ndim(x))
    resampling.known_length(x, axis, function)
    return moveaxis(x, axis, -1), axis


@numpy_function(signal.stft)
def stft(x, fs=1.0, window="hann_periodic", nperseg=256, noverlap=None, nfft=None, detrend=False,
         return_onesided=True, boundary="zeros", padded=True, axis=-1, scaling="spectrum") -> Any:
    """Return Fourier transforms of short times, as `scipy.signal.stft`.

    Examples
    --------
    >>> import cytape
    >>> from cytape.scipy.signal import stft
    >>> cytape.grad(lambda x: np.sum(np.abs(stft(x, nperseg=4)[2]) ** 2))(np.ones(4))
    array([1.5  , 0.875, 1.5  , 0.875])
    """
    if scaling not in ("spectrum", "psd"):
        raise ValueError(f"Parameter scaling={scaling!r} not in ['spectrum', 'psd']!")
    x, place = _along_last(x, axis, "stft")
    if 0 in x.shape:
        nothing = np.moveaxis(np.zeros(x.shape), -1, place)
        return nothing, nothing, without_influence(nothing, x)
    frequencies, times, (spectra,), _ = _spectra(
        [x], fs, window, nperseg, noverlap, nfft, detrend, return_onesided,
        "density" if scaling == "psd" else scaling, boundary, padded)
    return frequencies, times, moveaxis(moveaxis(spectra, -1, -2), -2, place)


@numpy_function(signal.istft)
def istft(Zxx, fs=1.0, window="hann_periodic", nperseg=None, noverlap=None,  # noqa: N803
          nfft=None, input_onesided=True, boundary=True, time_axis=-1, freq_axis=-2,
          scaling="spectrum") -> Any:
    """Return signals from Fourier transforms of short times, as `scipy.signal.istft`.

    Examples
    --------
    >>> import cytape
    >>> from cytape.scipy.signal import istft, stft
    >>> x = cytape.constant(np.arange(6.0))
    >>> istft(stft(x, nperseg=4)[2], nperseg=4)[1].numpy().round(9) + 0.0
    array([0., 1., 2., 3., 4., 5.])
    """
    z = operand(Zxx) + 0j
    if ndim(z) < 2:
        raise ValueError("Input stft must be at least 2d!")
    if freq_axis == time_axis:
        raise ValueError("Must specify differing time and frequency axes!")
    time_axis, freq_axis = (normalize_axis_index(int(k), ndim(z)) for k in (time_axis, freq_axis))
    count = resampling.known_length(z, time_axis, "istft")
    n_frequencies = resampling.known_length(z, freq_axis, "istft")
    default = 2 * (n_frequencies - 1) if input_onesided else n_frequencies
    n = default if nperseg is None else int(nperseg)
    if n < 1:
        raise ValueError("nperseg must be a positive integer")
    if nfft is None:
        nfft = n if input_onesided and n == default + 1 else default
    elif nfft < n:
        raise ValueError("nfft must be greater than or equal to nperseg.")
    step = n - _overlap(n, noverlap, n // 2)
    weights = signal.get_window(window, n) if isinstance(window, (str, tuple)) else (
        np.asarray(window))
    if weights.ndim != 1:
        raise ValueError("window must be 1-D")
    if len(weights) != n:
        raise ValueError(f"window must have length of {n}")
    z = moveaxis(z, (time_axis, freq_axis), (-2, -1))
    last = ndim(z) - 1
    segments = irfft_op(z, n=int(nfft), axis=last, norm=None) if input_onesided else fft_op(
        z, n=int(nfft), axis=last, norm=None, inverse=True)
    weights = weights.astype(real_dtype(segments.dtype))
    if scaling == "spectrum":
        scale = np.sum(weights)
    elif scaling == "psd":
        scale = np.sqrt(fs * np.sum(weights**2))
    else:
        raise ValueError(f"Parameter scaling={scaling!r} not in ['spectrum', 'psd']!")
    length = n + (count - 1) * step
    total = joined_op(segments[..., :n] * (weights * scale), step=step, length=length)
    norm = _joined(np.broadcast_to(weights**2, (count, n)), step=step, length=length)
    if boundary:
        inside = slice(n // 2, -(n // 2))
        total, norm = total[..., inside], norm[inside]
    if not np.all(norm > 1e-10):
        warn("NOLA condition failed, STFT may not be invertible."
             + ("" if boundary else " Possibly due to missing boundary"))
    total = total / np.where(norm > 1e-10, norm, 1)
    if ndim(total) > 1:
        total = moveaxis(total, -1, time_axis - (freq_axis < time_axis))
    return np.arange(total.shape[0]) / float(fs), total


def _density(x, y, fs, window, nperseg, noverlap, nfft, detrend, return_onesided, scaling, axis,
             average):
    signals, axes = zip(*[_along_last(each, axis, "csd") for each in (x, y)[:1 + (y is not x)]],
                        strict=True)
    lengths = [each.shape[-1] for each in signals]
    if any(0 in each.shape for each in signals):
        nothing = np.moveaxis(np.zeros((*signals[0].shape[:-1], min(lengths))), -1, axes[0])
        return nothing, without_influence(nothing, *signals)
    length = max(lengths)
    signals = [each if each.shape[-1] == length else np.pad(
        each, [*[(0, 0)] * (ndim(each) - 1), (0, length - each.shape[-1])]) for each in signals]
    frequencies, _, spectra, factors = _spectra(
        signals, fs, window, nperseg, noverlap, nfft, detrend,
        return_onesided and not any(each.dtype.kind == "c" for each in signals), scaling)
    powers = _powers(spectra, factors)
    if average == "mean" or powers.shape[-2] == 1:
        powers = mean(powers, -2)
    elif average == "median":
        odd = np.arange(1, (powers.shape[-2] - 1) // 2 + 1) * 2.0
        bias = float(1 + np.sum(1 / (odd + 1) - 1 / odd))
        if len(spectra) == 1:
            powers = np.median(powers, -2) / bias
        else:
            powers = (np.median(powers.real, -2) + 1j * np.median(powers.imag, -2)) / bias
    else:
        raise ValueError(f"Parameter average={average!r} must be 'median' or 'mean'!")
    return frequencies, moveaxis(powers, -1, axes[0])


@numpy_function(signal.csd, "x", "y")
def csd(x, y, fs=1.0, window="hann_periodic", nperseg=None, noverlap=None, nfft=None,
        detrend="constant", return_onesided=True, scaling="density", axis=-1,
        average="mean") -> Any:
    """Return the cross power spectral density by Welch's method, as `scipy.signal.csd`.

    Examples
    --------
    >>> import cytape
    >>> from cytape.scipy.signal import csd
    >>> cytape.grad(lambda x: np.sum(csd(x, x ** 2, nperseg=4)[1].real))(np.arange(4.0)).shape
    (4,)
    """
    x, y = (x, x) if x is y else together(operand(x), operand(y))
    return _density(x, y, fs, window, nperseg, noverlap, nfft, detrend, return_onesided, scaling,
                    axis, average)


@numpy_function(signal.welch)
def welch(x, fs=1.0, window="hann_periodic", nperseg=None, noverlap=None, nfft=None,
          detrend="constant", return_onesided=True, scaling="density", axis=-1,
          average="mean") -> Any:
    """Return the power spectral density by Welch's method, as `scipy.signal.welch`.

    Examples
    --------
    >>> import cytape
    >>> from cytape.scipy.signal import welch
    >>> cytape.grad(lambda x: np.sum(welch(x, nperseg=4)[1]))(np.arange(4.0)).round(3)
    array([-1.   , -1.667,  1.667,  1.   ])
    """
    return _density(x, x, fs, window, nperseg, noverlap, nfft, detrend, return_onesided, scaling,
                    axis, average)


@numpy_function(signal.periodogram)
def periodogram(x, fs=1.0, window="boxcar", nfft=None, detrend="constant", return_onesided=True,
                scaling="density", axis=-1) -> Any:
    """Return the power spectral density of whole signals, as `scipy.signal.periodogram`.

    Examples
    --------
    >>> import cytape
    >>> from cytape.scipy.signal import periodogram
    >>> cytape.grad(lambda x: periodogram(x)[1][2])(np.array([1.0, -1.0, 1.0, -1.0]))
    array([ 2., -2.,  2., -2.])
    """
    x, axis = _along_last(x, axis, "periodogram")
    window = "boxcar" if window is None else window
    n = x.shape[-1]
    if nfft is not None and nfft < n:
        x, n, nfft = x[..., :nfft], nfft, None
    if hasattr(window, "size") and window.size != n:
        raise ValueError("the size of the window must be the same size of the input on the "
                         "specified axis")
    frequencies, power = welch(x, fs, window, n, 0, nfft, detrend, return_onesided, scaling)
    return frequencies, moveaxis(power, -1, axis)


@numpy_function(signal.coherence, "x", "y")
def coherence(x, y, fs=1.0, window="hann_periodic", nperseg=None, noverlap=None, nfft=None,
              detrend="constant", axis=-1) -> Any:
    """Return the coherence of two signals by Welch's method, as `scipy.signal.coherence`.

    Examples
    --------
    >>> import cytape
    >>> from cytape.scipy.signal import coherence
    >>> x = cytape.constant(np.arange(12.0))
    >>> coherence(x, x, nperseg=4)[1].numpy().round(9)
    array([1., 1., 1.])
    """
    x, y = together(operand(x), operand(y))
    options = (fs, window, nperseg, noverlap, nfft, detrend)
    frequencies, power_of_x = welch(x, *options, axis=axis)
    power_of_y = welch(y, *options, axis=axis)[1]
    return frequencies, absolute(csd(x, y, *options, axis=axis)[1])**2 / power_of_x / power_of_y


@numpy_function(signal.spectrogram)
def spectrogram(x, fs=1.0, window=("tukey_periodic", 0.25), nperseg=None, noverlap=None, nfft=None,
                detrend="constant", return_onesided=True, scaling="density", axis=-1,
                mode="psd") -> Any:
    """Return spectra of consecutive segments, as `scipy.signal.spectrogram`.

    Examples
    --------
    >>> import cytape
    >>> from cytape.scipy.signal import spectrogram
    >>> spectrogram(cytape.constant(np.arange(8.0)), nperseg=4)[2].shape
    (3, 2)
    """
    modes = ["psd", "complex", "magnitude", "angle", "phase"]
    if mode not in modes:
        raise ValueError(f"unknown value for mode {mode}, must be one of {modes}")
    x, place = _along_last(x, axis, "spectrogram")
    window = _window(window, nperseg, x.shape[-1])
    overlap = len(window) // 8 if noverlap is None else noverlap
    frequencies, times, spectra, factors = _spectra(
        [x], fs, window, None, overlap, nfft, detrend, return_onesided, scaling)
    result = _powers(spectra, factors) if mode == "psd" else spectra[0]
    if mode == "magnitude":
        result = absolute(result)
    elif mode in ("angle", "phase"):
        result = np.angle(result)
    result = moveaxis(moveaxis(result, -1, -2), -2, place)
    return frequencies, times, np.unwrap(result, axis=place) if mode == "phase" else result


# -- responses of filters --------------------------------------------------------------------------


def _response(coefficients, frequencies):
    powers = np.exp(-1j * frequencies[:, None] * np.arange(coefficients.shape[-1]))
    return powers @ coefficients


@numpy_function(signal.freqz, "b", "a")
def freqz(b, a=1, worN=512, whole=False, plot=None, fs=2 * np.pi,  # noqa: N803 (SciPy's name)
          include_nyquist=False) -> Any:
    """Return frequencies and the response of a filter there, as `scipy.signal.freqz`.

    Examples
    --------
    >>> import cytape
    >>> from cytape.scipy.signal import freqz
    >>> cytape.grad(lambda b: np.abs(freqz(b, worN=1)[1][0]))(np.ones(2))
    array([1., 1.])
    """
    b, a = together(operand(b), operand(a))
    b, a = (reshape(each, (1,)) if ndim(each) == 0 else each for each in (b, a))
    if ndim(b) != 1 or ndim(a) != 1:
        raise NotImplementedError("freqz of tensors takes one filter: b and a must have one axis")
    w, _ = signal.freqz([1.0], 1, worN, whole, None, fs, include_nyquist)
    angles = np.asarray(w) * (2 * np.pi / fs)
    response = _response(b, angles) / _response(a, angles)
    if plot is not None:
        plot(w, response)
    return w, response


@numpy_function(signal.freqz_sos)
def freqz_sos(sos, worN=512, whole=False, fs=2 * np.pi) -> Any:  # noqa: N803 (SciPy's name)
    """Return frequencies and the response of sections there, as `scipy.signal.freqz_sos`.

    Examples
    --------
    >>> import cytape
    >>> from cytape.scipy.signal import freqz_sos
    >>> freqz_sos(cytape.constant([[1.0, 1.0, 0.0, 1.0, 0.0, 0.0]]), worN=1)[1].numpy()
    array([2.+0.j])
    """
    sos = operand(sos)
    if ndim(sos) != 2 or sos.shape[1] != 6:
        signal.freqz_sos(np.zeros(sos.shape))
    total = 1.0
    for i in range(sos.shape[0]):
        w, response = freqz(sos[i][:3], sos[i][3:], worN, whole, None, fs)
        total = total * response
    return w, total


sosfreqz = freqz_sos


class ShortTimeFFT(signal.ShortTimeFFT):
    """Short-time Fourier transforms, as `scipy.signal.ShortTimeFFT`, of arrays only."""

    def __init__(self, win, *args, **options) -> None:
        if is_tensor(win):
            raise TypeError(
                "ShortTimeFFT takes no tensors: call stft, istft or spectrogram, with the window "
                "as an array; the signal may be a tensor")
        super().__init__(win, *args, **options)
