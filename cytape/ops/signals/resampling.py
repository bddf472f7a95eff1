"""Resampling, trends, smoothing by polynomials and analytic signals, of `scipy.signal`.

All are linear in the signal. Filters, windows and fits are SciPy's.
"""

import math
import operator
from typing import Any

import numpy as np
import scipy.fft
import scipy.signal as signal
from numpy.lib.array_utils import normalize_axis_index

from cytape.errors import SymbolicTensorError
from cytape.ops.adjoints.identity_groups import together
from cytape.ops.calls.operands import is_tensor, operand
from cytape.ops.creation import astype
from cytape.ops.engine import batch_axis
from cytape.ops.engine.numpy_wrapper import numpy_function
from cytape.ops.engine.op_kinds import linear, multilinear
from cytape.ops.images.correlations import convolve1d
from cytape.ops.joining import concatenate
from cytape.ops.rearranging import flip, index_along
from cytape.ops.shaping import expand_dims, moveaxis, ndim, reshape
from cytape.ops.signals.filter_products import lags_op
from cytape.ops.signals.linear_filters import sosfilt, sosfiltfilt
from cytape.ops.submodules.cut_or_pad import cut_or_pad_op
from cytape.ops.submodules.fourier import fft_op, irfft_op, rfft_op
from cytape.ops.submodules.matrix_parts import real_dtype
from cytape.tensor.values.spec import spec_like, symbolic_spec

__all__ = [
    "decimate", "detrend", "hilbert", "resample", "resample_poly", "savgol_filter", "upfirdn"]


def known_length(x, axis, function):
    """Return the length of a signal, which the function needs."""
    if x.shape[axis] is None:
        raise SymbolicTensorError(
            f"{function} needs to know the length of the signal: give the placeholder a shape, or "
            "reshape the tensor to a known one")
    return x.shape[axis]


# -- trends and smoothing --------------------------------------------------------------------------


# The residual of a least-squares fit is an orthogonal projection, so it is its own transpose.
detrend_op = linear(
    "ScipySignalDetrend",
    lambda x, axis, type, bp: signal.detrend(x, axis, type, list(bp)),
    transpose=lambda op, g: detrend_op(g, **op.attrs),
    shape_rule=lambda x, type, **_: spec_like(
        x, signal.detrend(np.ones(2, x.dtype), type=type).dtype),
    batch=batch_axis.along_axis)


@numpy_function(signal.detrend)
def detrend(data, axis=-1, type="linear", bp=0, overwrite_data=False) -> Any:
    """Remove a constant or a line, or lines between breaks, as `scipy.signal.detrend`.

    Examples
    --------
    >>> import cytape
    >>> from cytape.scipy.signal import detrend
    >>> cytape.grad(lambda x: detrend(x, type="constant")[0])(np.ones(4))
    array([ 0.75, -0.25, -0.25, -0.25])
    """
    x = operand(data)
    axis = normalize_axis_index(axis, ndim(x))
    return detrend_op(x, axis=axis, type=type, bp=tuple(np.atleast_1d(bp).tolist()))


@numpy_function(signal.savgol_filter, "x", "cval")
def savgol_filter(x, window_length, polyorder, deriv=0, delta=1.0, axis=-1, mode="interp",
                  cval=0.0) -> Any:
    """Smooth signals by local polynomials, as `scipy.signal.savgol_filter`.

    Examples
    --------
    >>> import cytape
    >>> from cytape.scipy.signal import savgol_filter
    >>> cytape.grad(lambda x: savgol_filter(x, 3, 1)[1])(np.ones(4)) * 3
    array([1., 1., 1., 0.])
    """
    x, cval = together(operand(x), cval)
    if mode not in ("mirror", "constant", "nearest", "interp", "wrap"):
        raise ValueError("mode must be 'mirror', 'constant', 'nearest' 'wrap' or 'interp'.")
    axis = normalize_axis_index(axis, ndim(x))
    x = x if x.dtype in (np.float64, np.float32) else astype(x, np.float64)
    coefficients = signal.savgol_coeffs(window_length, polyorder, deriv=deriv, delta=delta)
    if mode != "interp":
        return convolve1d(x, coefficients, axis, mode=mode, cval=cval)
    if window_length > known_length(x, axis, "savgol_filter"):
        raise ValueError("If mode is 'interp', window_length must be less than or equal to the "
                         "size of x.")
    half = window_length // 2
    fits = signal.savgol_filter(
        np.eye(window_length), window_length, polyorder, deriv, delta, 0).astype(x.dtype)
    n = x.shape[axis]
    inner = convolve1d(x, coefficients, axis, mode="constant")[
        index_along(axis, slice(half, n - half))]
    first, last = (moveaxis(np.tensordot(rows, x[index_along(axis, part)], (1, axis)), 0, axis)
                   for rows, part in ((fits[:half], slice(window_length)),
                                      (fits[window_length - half:], slice(n - window_length, n))))
    return concatenate([first, inner, last], axis)


@numpy_function(signal.hilbert)
def hilbert(x, N=None, axis=-1) -> Any:  # noqa: N803 (SciPy's name)
    """Return the analytic signal of real signals, as `scipy.signal.hilbert`.

    Examples
    --------
    >>> import cytape
    >>> from cytape.scipy.signal import hilbert
    >>> cytape.grad(lambda x: hilbert(x)[1].imag)(np.ones(4)) + 0.0
    array([ 0.5,  0. , -0.5,  0. ])
    """
    x = operand(x)
    if x.dtype.kind == "c":
        raise ValueError("x must be real.")
    axis = normalize_axis_index(axis, ndim(x))
    n = known_length(x, axis, "hilbert") if N is None else N
    if n <= 0:
        raise ValueError("N must be positive.")
    spectrum = fft_op(x, n=n, axis=axis, norm=None, inverse=False)
    weights = np.zeros(n, real_dtype(spectrum.dtype))
    weights[0] = 1
    weights[1:(n + 1) // 2] = 2
    if n % 2 == 0:
        weights[n // 2] = 1
    weights = weights.reshape(-1, *[1] * (ndim(x) - 1 - axis))
    return fft_op(spectrum * weights, n=None, axis=axis, norm=None, inverse=True)


# -- another rate ----------------------------------------------------------------------------------


def _stuffed(x, factor):
    """Put zeros between the elements of the last axis."""
    longer = cut_or_pad_op(expand_dims(x, -1), axis=x.ndim, n=factor)
    return reshape(longer, (*x.shape[:-1], x.shape[-1] * factor))


def _upfirdn_for_taps(op, g, x):
    up, down, axis = map(op.attrs.get, ("up", "down", "axis"))
    n_taps, n = op.input_specs[0].shape[0], x.shape[axis]
    if None in (n_taps, *x.shape):
        return NotImplemented
    length = (n - 1) * up + n_taps
    last = x.ndim - 1
    signals = [cut_or_pad_op(_stuffed(moveaxis(each, axis, -1), factor), axis=last, n=length)
               for each, factor in ((g, down), (x, up))]
    return lags_op(*signals, axis=last, n_lags=n_taps)


def _upfirdn_for_signal(op, h, g):
    """Exchange the rates and reverse the taps, which begin at a multiple of the upper rate."""
    up, down, axis = map(op.attrs.get, ("up", "down", "axis"))
    n = op.input_specs[1].shape[axis]
    if None in (n, h.shape[0], g.shape[axis]):
        return NotImplemented
    zeros = -(h.shape[0] - 1) % up
    taps = concatenate([np.zeros(zeros, h.dtype), flip(h)])
    start = (h.shape[0] - 1 + zeros) // up
    result = upfirdn_op(taps, g, up=down, down=up, axis=axis)
    part = result[index_along(axis, slice(start, start + n))]
    return part if part.shape[axis] == n else cut_or_pad_op(part, axis=axis, n=n)


def _upfirdn_spec(h, x, up, down, axis):
    shape = list(x.shape)
    n = shape[axis]
    shape[axis] = None if n is None or h.shape[0] is None else (
        ((n - 1) * up + h.shape[0] - 1) // down + 1)
    dtype = signal.upfirdn(np.ones(1, h.dtype), np.ones(1, x.dtype)).dtype
    return symbolic_spec(tuple(shape), dtype)


upfirdn_op = multilinear(
    "ScipySignalUpfirdn",
    lambda h, x, up, down, axis: signal.upfirdn(h, x, up, down, axis),
    _upfirdn_for_taps, _upfirdn_for_signal, shape_rule=_upfirdn_spec,
    batch=lambda call: NotImplemented if call.mapped[0] else call.again(
        call.inputs, axis=call.attrs["axis"] + 1))


@numpy_function(signal.upfirdn, "h", "x")
def upfirdn(h, x, up=1, down=1, axis=-1, mode="constant", cval=0) -> Any:
    """Raise the rate, filter and lower the rate, as `scipy.signal.upfirdn`.

    Tensors need zeros beyond the ends: ``mode="constant", cval=0``.

    Examples
    --------
    >>> import cytape
    >>> from cytape.scipy.signal import upfirdn
    >>> cytape.grad(lambda x: upfirdn([1.0, 2.0], x, up=2)[1])(np.ones(2))
    array([2., 0.])
    """
    if mode not in (None, "constant") or cval is not None and cval != 0:
        raise NotImplementedError(
            "upfirdn of tensors takes mode='constant' and cval=0 only: extend the signal by "
            "cytape.numpy.pad, and cut the result")
    h, x = together(operand(h), operand(x))
    if ndim(h) != 1 or h.shape[0] == 0:
        raise ValueError("h must be 1-D with non-zero length")
    up, down = int(up), int(down)
    if up < 1 or down < 1:
        raise ValueError("Both up and down must be >= 1")
    return upfirdn_op(h, x, up=up, down=down, axis=normalize_axis_index(axis, ndim(x)))


_BACKGROUNDS: dict[str, Any] = {
    "mean": np.mean, "median": np.median, "minimum": np.min, "maximum": np.max}


@numpy_function(signal.resample_poly, "x", "window")
def resample_poly(x, up, down, axis=0, window=("kaiser", 5.0), padtype="constant",
                  cval=None) -> Any:
    """Resample signals by a filter and two rates, as `scipy.signal.resample_poly`.

    Tensors need a `padtype` of "constant", with zeros, "mean", "median", "minimum" or "maximum".

    Examples
    --------
    >>> import cytape
    >>> from cytape.scipy.signal import resample_poly
    >>> cytape.grad(lambda x: resample_poly(x, 2, 1)[2])(np.ones(4)).round(3) + 0.0
    array([0.   , 1.001, 0.   , 0.   ])
    """
    x = operand(x)
    if up != int(up) or down != int(down) or up < 1 or down < 1 or (
            cval is not None and padtype != "constant"):
        signal.resample_poly(np.ones(2), up, down, padtype=padtype, cval=cval)  # SciPy's errors
    if padtype not in _BACKGROUNDS and padtype != "constant" or cval:
        signal.resample_poly(np.ones(2), 2, 1, padtype=padtype, cval=cval)
        raise NotImplementedError(
            "resample_poly of tensors takes padtype='constant' with cval=0, 'mean', 'median', "
            "'minimum' or 'maximum'")
    axis = normalize_axis_index(axis, ndim(x))
    divisor = math.gcd(int(up), int(down))
    up, down = int(up) // divisor, int(down) // divisor
    if up == down == 1:
        return x + 0
    n = known_length(x, axis, "resample_poly")
    n_out = -(-n * up // down)
    if isinstance(window, (list, np.ndarray)) or is_tensor(window):
        h = operand(window)
        if ndim(h) > 1:
            raise ValueError("window must be 1-D")
        half = (h.shape[0] - 1) // 2
    else:
        fastest = max(up, down)
        half = 10 * fastest
        h = signal.firwin(2 * half + 1, 1 / fastest, window=window)
        h = h.astype(x.dtype) if x.dtype.kind in "fc" else h
    before = down - half % down
    first = (half + before) // down
    after = 0
    while ((n - 1) * up + h.shape[0] + before + after - 1) // down + 1 < n_out + first:
        after += 1
    h = concatenate([np.zeros(before, h.dtype), h * up, np.zeros(after, h.dtype)])
    background = _BACKGROUNDS[padtype](x, axis=axis, keepdims=True) if (
        padtype in _BACKGROUNDS) else None
    y = upfirdn(h, x if background is None else x - background, up, down, axis)
    y = y[index_along(axis, slice(first, first + n_out))]
    return y if background is None else y + background


@numpy_function(signal.decimate)
def decimate(x, q, n=None, ftype="iir", axis=-1, zero_phase=True) -> Any:
    """Filter signals and keep every q-th sample, as `scipy.signal.decimate`.

    Examples
    --------
    >>> import cytape
    >>> from cytape.scipy.signal import decimate
    >>> cytape.grad(lambda x: np.sum(decimate(x, 2)))(np.ones(40)).shape
    (40,)
    """
    x, q = operand(x), operator.index(q)
    axis = normalize_axis_index(axis, ndim(x))
    dtype = x.dtype if x.dtype.char in "fdFD" else np.float64
    if ftype == "fir":
        b = signal.firwin((20 * q if n is None else operator.index(n)) + 1, 1 / q,
                          window="hamming").astype(dtype)
        if zero_phase:
            return resample_poly(x, 1, q, axis, window=b)
        count = -(-known_length(x, axis, "decimate") // q)
        return upfirdn(b, x, 1, q, axis)[index_along(axis, slice(count))]
    if not isinstance(ftype, str):
        raise NotImplementedError("decimate of tensors takes ftype='iir' or 'fir' only")
    if ftype != "iir":
        raise ValueError("invalid ftype")
    sos = signal.cheby1(8 if n is None else operator.index(n), 0.05, 0.8 / q, output="sos")
    function = sosfiltfilt if zero_phase else sosfilt
    return function(sos.astype(dtype), x, axis)[index_along(axis, slice(None, None, q))]


def _window(window, n):
    """Return the weights of all frequencies."""
    if callable(window):
        return window(scipy.fft.fftfreq(n))
    if hasattr(window, "shape"):
        if window.shape != (n,):
            raise ValueError(f"window.shape={window.shape} != ({n},), i.e., window length is not "
                             "equal to number of frequency bins!")
        return np.array(window)
    return scipy.fft.fftshift(signal.get_window(window, n))


@numpy_function(signal.resample)
def resample(x, num, t=None, axis=0, window=None, domain="time") -> Any:
    """Resample periodic signals by Fourier transforms, as `scipy.signal.resample`.

    Examples
    --------
    >>> import cytape
    >>> from cytape.scipy.signal import resample
    >>> cytape.grad(lambda x: resample(x, 4)[2])(np.ones(2)).round(9) + 0.0
    array([0., 1.])
    """
    if domain not in ("time", "freq"):
        raise ValueError(f"Parameter domain={domain!r} not in ('time', 'freq')!")
    x = operand(x)
    axis = normalize_axis_index(axis, ndim(x))
    n = known_length(x, axis, "resample")
    x = moveaxis(x, axis, -1)
    last, kept = ndim(x) - 1, min(num, n)
    half = kept // 2 + 1
    weights = None if window is None else _window(window, n)
    if domain == "time" and x.dtype.kind != "c":
        spectrum = rfft_op(x, n=None, axis=last, norm=None)
        factors = np.ones(half, real_dtype(spectrum.dtype))
        if weights is not None:
            count = n // 2 + 1
            weights[1:count] = (weights[1:count] + weights[:-count:-1]) / 2
            factors *= weights[:half]
        if kept % 2 == 0 and num != n:
            factors[-1] *= 2 if num < n else 0.5
        result = irfft_op(spectrum[..., :half] * (factors * (num / n)), n=num, axis=last, norm=None)
    else:
        spectrum = fft_op(x, n=None, axis=last, norm=None, inverse=False) if (
            domain == "time") else x
        if weights is not None:
            spectrum = spectrum * weights.astype(real_dtype(spectrum.dtype))
        low, high = spectrum[..., :half], spectrum[..., n - (kept - half):]
        parts = [low, high]
        if kept % 2 == 0 and num < n:
            other = spectrum[..., n - kept // 2:n - kept // 2 + 1]
            parts = [low[..., :-1], low[..., -1:] + other, high]
        elif num > n:
            shape = (*spectrum.shape[:-1], num - kept - (kept % 2 == 0))
            zeros = np.zeros(shape, spectrum.dtype)
            shared = low[..., -1:] / 2
            parts = [low[..., :-1], shared, zeros, shared, high] if kept % 2 == 0 else [
                low, zeros, high]
        spectrum = concatenate(parts, -1) * (num / n)
        result = fft_op(spectrum, n=None, axis=last, norm=None, inverse=True)
    result = moveaxis(result, -1, axis)
    return result if t is None else (result, t[0] + (t[1] - t[0]) * (n / num) * np.arange(num))
