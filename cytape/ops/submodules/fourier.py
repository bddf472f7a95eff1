"""Fourier transforms: `numpy.fft`.

A transform is linear; its transpose is the transform in the other direction with the same scaling.
(Frigo and Johnson, "The design and implementation of FFTW3" (2005), define the transforms.)
Transforms of real arrays omit half of a Hermitian spectrum, so in their transposes frequencies that
represent two have weights of 1/2 or 2.

Transforms along several axes are composed of those along one, as in NumPy.
"""

from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index, normalize_axis_tuple

from cytape.ops.calls.operands import is_tensor, joined
from cytape.ops.elementwise import conj
from cytape.ops.engine import batch_axis
from cytape.ops.engine.numpy_wrapper import numpy_function
from cytape.ops.engine.op_kinds import linear
from cytape.ops.matrix_products import conj_if_complex
from cytape.ops.shapes import shape_rules
from cytape.ops.shaping import ndim, shape
from cytape.ops.submodules.cut_or_pad import cut_or_pad_op, with_extent
from cytape.ops.submodules.matrix_parts import real_dtype
from cytape.tensor.values.spec import symbolic_spec
from cytape.tensor.values.user_warnings import warn

__all__ = [
    "fft", "fft2", "fftn", "fftshift", "hfft", "ifft", "ifft2", "ifftn", "ifftshift", "ihfft",
    "irfft", "irfft2", "irfftn", "rfft", "rfft2", "rfftn",
]  # fmt: skip

# The norm of the transform in the other direction with the same factor.
_SAME_FACTOR = {
    None: "forward", "backward": "forward", "ortho": "ortho", "forward": "backward"
}  # fmt: skip


def _same_factor(norm):
    try:
        return _SAME_FACTOR[norm]
    except KeyError:
        raise ValueError(
            f'Invalid norm value {norm}; should be "backward", "ortho" or "forward".'
        ) from None


def _fitted(op, gradient):
    """Return the gradient of an operand that was truncated or padded before the transform."""
    axis = op.attrs["axis"]
    extent = op.input_specs[0].shape[axis]
    if extent is None:
        return NotImplemented
    if gradient.shape[axis] == extent:
        return gradient
    return cut_or_pad_op(gradient, axis=axis, n=extent)


# -- transforms along one axis ---------------------------------------------------------------------


def _dtype_of(transform, x, norm):
    """Return the dtype of the operand, or raise for unsupported dtypes and norms."""
    return transform(np.zeros(2, x.dtype), norm=norm).dtype


def _positive(n):
    if n is not None and n < 1:
        raise ValueError(f"Invalid number of FFT data points ({n}) specified.")
    return n


def _transformed_axis(x, axis):
    return normalize_axis_index(axis, ndim(x))


def _fft(x, *, n, axis, norm, inverse):
    return (np.fft.ifft if inverse else np.fft.fft)(x, n, axis, norm)


def _fft_spec(x, *, n, axis, norm, inverse):
    shape = shape_rules.shape_of(x, "fft")
    n = _positive(shape[axis] if n is None else n)
    return symbolic_spec(with_extent(shape, axis, n), _dtype_of(np.fft.fft, x, norm))


def _fft_transpose(op, g):
    attrs = op.attrs
    gradient = fft_op(
        g, n=None, axis=attrs["axis"], norm=_same_factor(attrs["norm"]),
        inverse=not attrs["inverse"],
    )  # fmt: skip
    return gradient if attrs["n"] is None else _fitted(op, gradient)


fft_op = linear(
    "FFT",
    _fft,
    transpose=_fft_transpose,
    shape_rule=_fft_spec,
    batch=batch_axis.along_axis,
)


def _weights(op, n, of_pairs, dtype):
    """Return the weights of half of n frequencies; all but one or two represent pairs."""
    weights = np.empty(n // 2 + 1, dtype)
    weights.fill(of_pairs)
    weights[0] = 1
    if n % 2 == 0:
        weights[-1] = 1
    behind = op.input_specs[0].ndim - 1 - op.attrs["axis"]
    return weights.reshape(-1, *[1] * behind) if behind else weights


def _rfft_transpose(op, g):
    n, axis, norm = op.attrs["n"], op.attrs["axis"], op.attrs["norm"]
    if n is None:
        n = op.input_specs[0].shape[axis]
        if n is None:
            return NotImplemented
    weighted = g * _weights(op, n, 0.5, real_dtype(g.dtype))
    return _fitted(op, irfft_op(weighted, n=n, axis=axis, norm=_same_factor(norm)))


def _rfft_spec(x, *, n, axis, norm):
    shape = shape_rules.shape_of(x, "rfft")
    n = _positive(shape[axis] if n is None else n)
    n = None if n is None else n // 2 + 1
    return symbolic_spec(with_extent(shape, axis, n), _dtype_of(np.fft.rfft, x, norm))


rfft_op = linear(
    "RFFT",
    lambda x, *, n, axis, norm: np.fft.rfft(x, n, axis, norm),
    transpose=_rfft_transpose,
    shape_rule=_rfft_spec,
    batch=batch_axis.along_axis,
)


def _irfft(x, *, n, axis, norm):
    """Transform; n = -1 means as many numbers as frequencies."""
    return np.fft.irfft(x, x.shape[axis] if n == -1 else n, axis, norm)


def _irfft_transpose(op, g):
    axis, norm, n = op.attrs["axis"], op.attrs["norm"], g.shape[op.attrs["axis"]]
    if n is None:
        return NotImplemented
    spectrum = rfft_op(g, n=None, axis=axis, norm=_same_factor(norm))
    return _fitted(op, spectrum * _weights(op, n, 2, g.dtype))


def _irfft_spec(x, *, n, axis, norm):
    shape = shape_rules.shape_of(x, "irfft")
    if n == -1:
        n = shape[axis]
    elif n is None and shape[axis] is not None:
        n = 2 * (shape[axis] - 1)
    return symbolic_spec(
        with_extent(shape, axis, _positive(n)), _dtype_of(np.fft.irfft, x, norm))


irfft_op = linear(
    "IRFFT",
    _irfft,
    transpose=_irfft_transpose,
    shape_rule=_irfft_spec,
    batch=batch_axis.along_axis,
)


@numpy_function(np.fft.fft)
def fft(a, n=None, axis=-1, norm=None, out=None) -> Any:
    """Return the Fourier transform along an axis, as `numpy.fft.fft`.

    Examples
    --------
    >>> import cytape
    >>> np.fft.fft(cytape.constant([1.0, 2.0])).numpy()
    array([ 3.+0.j, -1.+0.j])
    """
    return fft_op(a, n=n, axis=_transformed_axis(a, axis), norm=norm, inverse=False)


@numpy_function(np.fft.ifft)
def ifft(a, n=None, axis=-1, norm=None, out=None) -> Any:
    """Return the inverse Fourier transform along an axis, as `numpy.fft.ifft`.

    Examples
    --------
    >>> import cytape
    >>> np.fft.ifft(cytape.constant([3.0, -1.0])).numpy()
    array([1.+0.j, 2.+0.j])
    """
    return fft_op(a, n=n, axis=_transformed_axis(a, axis), norm=norm, inverse=True)


@numpy_function(np.fft.rfft)
def rfft(a, n=None, axis=-1, norm=None, out=None) -> Any:
    """Return half of the Fourier transform of real numbers, as `numpy.fft.rfft`.

    Examples
    --------
    >>> import cytape
    >>> np.fft.rfft(cytape.constant([1.0, 2.0, 1.0])).shape
    (2,)
    """
    return rfft_op(a, n=n, axis=_transformed_axis(a, axis), norm=norm)


@numpy_function(np.fft.irfft)
def irfft(a, n=None, axis=-1, norm=None, out=None) -> Any:
    """Return the real numbers with a given half of a spectrum, as `numpy.fft.irfft`.

    Examples
    --------
    >>> import cytape
    >>> np.fft.irfft(cytape.constant([3.0, -1.0])).numpy()
    array([1., 2.])
    """
    return irfft_op(a, n=_positive(n), axis=_transformed_axis(a, axis), norm=norm)


@numpy_function(np.fft.hfft)
def hfft(a, n=None, axis=-1, norm=None, out=None) -> Any:
    """Return the real spectrum of a Hermitian signal, of which half is given, as `numpy.fft.hfft`.

    Examples
    --------
    >>> import cytape
    >>> np.fft.hfft(cytape.constant([1.0, 2.0])).numpy()
    array([ 3., -1.])
    """
    axis = _transformed_axis(a, axis)
    return irfft_op(conj_if_complex(joined(a)), n=_positive(n), axis=axis, norm=_same_factor(norm))


@numpy_function(np.fft.ihfft)
def ihfft(a, n=None, axis=-1, norm=None, out=None) -> Any:
    """Return half of the Hermitian signal that has a real spectrum, as `numpy.fft.ihfft`.

    Examples
    --------
    >>> import cytape
    >>> np.fft.ihfft(cytape.constant([3.0, -1.0])).numpy()
    array([1.-0.j, 2.-0.j])
    """
    return conj(rfft_op(a, n=n, axis=_transformed_axis(a, axis), norm=_same_factor(norm)))


# -- transforms along several axes -----------------------------------------------------------------


def _lengths_and_axes(a, s, axes):
    """Return pairs of a length (None: that of the axis) and an axis."""
    s_is_given = s is not None
    if axes is None:
        if s is None:
            axes = range(ndim(a))
        else:
            warn(
                "`axes` should not be `None` if `s` is not `None` (Deprecated in NumPy 2.0). In a "
                "future version of NumPy, this will raise an error and `s[i]` will correspond to "
                "the size along the transformed axis specified by `axes[i]`. To retain current "
                "behaviour, pass a sequence [0, ..., k-1] to `axes` for an array of dimension k.",
                DeprecationWarning)
            axes = range(-len(s), 0)
    elif s is None:
        s = [None] * len(list(np.take(np.zeros(ndim(a)), axes)))  # or NumPy's error
    s = [None] * len(axes) if s is None else list(s)
    if s_is_given and None in s:
        warn(
            "Passing an array containing `None` values to `s` is deprecated in NumPy 2.0 and will "
            "raise an error in a future version of NumPy. To use the default behaviour of the "
            "corresponding 1-D transform, pass the value matching the default for its `n` "
            "parameter. To use the default behaviour for every axis, the `s` argument can be "
            "omitted.",
            DeprecationWarning)
    if len(s) != len(axes):
        raise ValueError("Shape and axes have different lengths.")
    axes = normalize_axis_tuple(axes, ndim(a), allow_duplicate=True)
    if not s_is_given and len(set(axes)) < len(axes):  # repeated axes keep their initial length
        s = [shape(a)[axis] for axis in axes]
    return [(None if n == -1 else n, axis) for n, axis in zip(s, axes, strict=True)]


@numpy_function(np.fft.fftn)
def fftn(a, s=None, axes=None, norm=None, out=None) -> Any:
    """Return the Fourier transform along several axes, as `numpy.fft.fftn`.

    Examples
    --------
    >>> import cytape
    >>> np.fft.fftn(cytape.constant([[1.0, 2.0]])).numpy()
    array([[ 3.+0.j, -1.+0.j]])
    """
    for n, axis in reversed(_lengths_and_axes(a, s, axes)):
        a = fft_op(a, n=n, axis=axis, norm=norm, inverse=False)
    return a


@numpy_function(np.fft.ifftn)
def ifftn(a, s=None, axes=None, norm=None, out=None) -> Any:
    """Return the inverse Fourier transform along several axes, as `numpy.fft.ifftn`.

    Examples
    --------
    >>> import cytape
    >>> np.fft.ifftn(cytape.constant([[3.0, -1.0]])).numpy()
    array([[1.+0.j, 2.+0.j]])
    """
    for n, axis in reversed(_lengths_and_axes(a, s, axes)):
        a = fft_op(a, n=n, axis=axis, norm=norm, inverse=True)
    return a


@numpy_function(np.fft.rfftn)
def rfftn(a, s=None, axes=None, norm=None, out=None) -> Any:
    """Transform by `rfft` along the last axis and `fft` along others, as `numpy.fft.rfftn`.

    Examples
    --------
    >>> import cytape
    >>> np.fft.rfftn(cytape.constant(np.ones((2, 4)))).shape
    (2, 3)
    """
    pairs = _lengths_and_axes(a, s, axes)
    n, axis = pairs[-1]  # or NumPy's error: there must be one
    a = rfft_op(a, n=n, axis=axis, norm=norm)
    for n, axis in reversed(pairs[:-1]):
        a = fft_op(a, n=n, axis=axis, norm=norm, inverse=False)
    return a


@numpy_function(np.fft.irfftn)
def irfftn(a, s=None, axes=None, norm=None, out=None) -> Any:
    """Transform by `ifft` along all axes but the last, and `irfft` there, as `numpy.fft.irfftn`.

    Examples
    --------
    >>> import cytape
    >>> np.fft.irfftn(cytape.constant(np.ones((2, 3)))).shape
    (2, 4)
    """
    pairs = _lengths_and_axes(a, s, axes)
    n, axis = pairs[-1]  # or NumPy's error: there must be one
    if s is None:
        n = None
    elif s[-1] == -1:
        n = -1
    for length, other in pairs[:-1]:
        a = fft_op(a, n=length, axis=other, norm=norm, inverse=True)
    return irfft_op(a, n=n, axis=axis, norm=norm)


@numpy_function(np.fft.fft2)
def fft2(a, s=None, axes=(-2, -1), norm=None, out=None) -> Any:
    """Transform by `fftn` along two axes, as `numpy.fft.fft2`.

    Examples
    --------
    >>> import cytape
    >>> np.fft.fft2(cytape.constant([[1.0, 2.0]])).numpy()
    array([[ 3.+0.j, -1.+0.j]])
    """
    return fftn(a, s, axes, norm)


@numpy_function(np.fft.ifft2)
def ifft2(a, s=None, axes=(-2, -1), norm=None, out=None) -> Any:
    """Transform by `ifftn` along two axes, as `numpy.fft.ifft2`.

    Examples
    --------
    >>> import cytape
    >>> np.fft.ifft2(cytape.constant([[3.0, -1.0]])).numpy()
    array([[1.+0.j, 2.+0.j]])
    """
    return ifftn(a, s, axes, norm)


@numpy_function(np.fft.rfft2)
def rfft2(a, s=None, axes=(-2, -1), norm=None, out=None) -> Any:
    """Transform by `rfftn` along two axes, as `numpy.fft.rfft2`.

    Examples
    --------
    >>> import cytape
    >>> np.fft.rfft2(cytape.constant(np.ones((2, 4)))).shape
    (2, 3)
    """
    return rfftn(a, s, axes, norm)


def irfft2(a, s=None, axes=(-2, -1), norm=None, out=None) -> Any:
    """Transform by `irfftn` along two axes, as `numpy.fft.irfft2`.

    Examples
    --------
    >>> import cytape
    >>> np.fft.irfft2(cytape.constant(np.ones((2, 3)))).shape
    (2, 4)
    """
    return irfftn(a, s, axes, norm, out)  # NumPy's irfft2 ignores out


# -- shifts ----------------------------------------------------------------------------------------


def _shift(x, *, axes, inverse):
    return (np.fft.ifftshift if inverse else np.fft.fftshift)(x, axes)


shift_op = linear(
    "FFTShift",
    _shift,
    transpose=lambda op, g: shift_op(g, axes=op.attrs["axes"], inverse=not op.attrs["inverse"]),
    shape_rule=shape_rules.same,
    batch=batch_axis.along("axes"),
)


def _shifted(x, axes, inverse):
    if is_tensor(x):
        axes = normalize_axis_tuple(range(ndim(x)) if axes is None else axes, ndim(x), "axes", True)
    return shift_op(x, axes=axes, inverse=inverse)


def fftshift(x, axes=None) -> Any:
    """Put the frequency 0 in the middle, as `numpy.fft.fftshift`.

    Examples
    --------
    >>> import cytape
    >>> np.fft.fftshift(cytape.constant([0.0, 1.0, -1.0])).numpy()
    array([-1.,  0.,  1.])
    """
    return _shifted(x, axes, False)


def ifftshift(x, axes=None) -> Any:
    """Undo `fftshift`, as `numpy.fft.ifftshift`.

    Examples
    --------
    >>> import cytape
    >>> np.fft.ifftshift(cytape.constant([-1.0, 0.0, 1.0])).numpy()
    array([ 0.,  1., -1.])
    """
    return _shifted(x, axes, True)
