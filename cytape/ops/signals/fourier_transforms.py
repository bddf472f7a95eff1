"""Fourier transforms by the signatures of `scipy.fft`, made of the ops of `numpy.fft`.

Both libraries call pocketfft. `workers` and `overwrite_x` have no effect on tensors.
"""

import numpy as np
import scipy.fft
from numpy.lib.array_utils import normalize_axis_index, normalize_axis_tuple

from cytape.ops.creation import astype
from cytape.ops.elementwise import conj
from cytape.ops.engine.numpy_wrapper import numpy_function
from cytape.ops.matrix_products import conj_if_complex
from cytape.ops.shaping import ndim, shape
from cytape.ops.submodules import fourier
from cytape.tensor import convert_to_tensor

__all__ = [
    "fft", "fft2", "fftn", "fftshift", "hfft", "hfft2", "hfftn", "ifft", "ifft2", "ifftn",
    "ifftshift", "ihfft", "ihfft2", "ihfftn", "irfft", "irfft2", "irfftn", "rfft", "rfft2",
    "rfftn",
]  # fmt: skip

_OTHER_NORM = {None: "forward", "backward": "forward", "ortho": "ortho", "forward": "backward"}
_REAL = ("rfft", "ihfft")  # transforms of real numbers


def other_norm(norm):
    """Return the normalization of the inverse transform, or raise SciPy's error."""
    if norm not in _OTHER_NORM:
        scipy.fft.fft([1.0], norm=norm)
    return _OTHER_NORM[norm]


def checked(workers, plan=None):
    """Raise SciPy's errors for options that have no effect."""
    if workers is not None or plan is not None:
        scipy.fft.fft([1.0], workers=workers, plan=plan)


def along(transform, x, n, axis, norm):
    """Transform along one axis."""
    axis = normalize_axis_index(axis, ndim(x))
    if n is not None and n < 1:
        raise ValueError(f"invalid number of data points ({n}) specified")
    if transform in _REAL and x.dtype.kind == "c":
        raise TypeError("x must be a real sequence")
    if x.dtype == np.float16:  # which SciPy does not keep
        x = astype(x, np.float32)
    if transform in ("fft", "ifft"):
        return fourier.fft_op(x, n=n, axis=axis, norm=norm, inverse=transform == "ifft")
    if transform == "rfft":
        return fourier.rfft_op(x, n=n, axis=axis, norm=norm)
    if transform == "irfft":
        return fourier.irfft_op(x, n=n, axis=axis, norm=norm)
    if transform == "hfft":
        return fourier.irfft_op(conj_if_complex(x), n=n, axis=axis, norm=other_norm(norm))
    return conj(fourier.rfft_op(x, n=n, axis=axis, norm=other_norm(norm)))


def lengths_and_axes(x, s, axes, checked_by):
    """Return pairs of a length (None: that of the axis) and an axis; raise SciPy's errors."""
    n_axes = ndim(x)
    if s is not None or axes is not None:
        lengths = None if s is None else np.minimum(s, 1).tolist()
        checked_by(np.ones((1,) * n_axes), s=lengths, axes=axes)
    s = None if s is None else np.atleast_1d(s).tolist()
    if axes is None:
        axes = range(n_axes) if s is None else range(n_axes - len(s), n_axes)
    axes = normalize_axis_tuple(axes, n_axes)
    if s is None:
        return [(None, axis) for axis in axes]
    return [(shape(x)[axis] if n == -1 else n, axis) for n, axis in zip(s, axes, strict=True)]


def _one_axis(name):
    def transform(x, n=None, axis=-1, norm=None, overwrite_x=False, workers=None, *, plan=None):
        checked(workers, plan)
        other_norm(norm)
        return along(name, convert_to_tensor(x), n, axis, norm)

    return named(name, transform)


def _several_axes(name, default=None):
    last, other, is_first = {
        "f": ("fft", "fft", True), "i": ("ifft", "ifft", True), "r": ("rfft", "fft", True),
        "ir": ("irfft", "ifft", False), "h": ("hfft", "fft", False), "ih": ("ihfft", "ifft", True),
    }[name.partition("fft")[0] or "f"]  # fmt: skip

    def transform(x, s=None, axes=default, norm=None, overwrite_x=False, workers=None, *,
                  plan=None):
        checked(workers, plan)
        other_norm(norm)
        x = convert_to_tensor(x)
        pairs = lengths_and_axes(x, s, axes, scipy.fft.fftn)
        if not pairs:
            if last != other:
                raise ValueError("at least 1 axis must be transformed")
            return x
        (n, axis), rest = pairs[-1], pairs[-2::-1]
        if is_first:
            x = along(last, x, n, axis, norm)
        for length, along_axis in rest:
            x = along(other, x, length, along_axis, norm)
        return x if is_first else along(last, x, n, axis, norm)

    return named(name, transform)


def named(name, transform):
    """Return the version for tensors of a function of `scipy.fft`."""
    theirs = getattr(scipy.fft, name)
    transform.__name__ = transform.__qualname__ = name
    summary = (theirs.__doc__ or "").strip().partition("\n\n")[0]
    transform.__doc__ = f"{' '.join(summary.split())}\n\nAs `scipy.fft.{name}`, which describes it."
    return numpy_function(theirs)(transform)


fft, ifft, rfft, irfft, hfft, ihfft = map(
    _one_axis, ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"])
fftn, ifftn, rfftn, irfftn, hfftn, ihfftn = map(
    _several_axes, ["fftn", "ifftn", "rfftn", "irfftn", "hfftn", "ihfftn"])
fft2, ifft2, rfft2, irfft2, hfft2, ihfft2 = [
    _several_axes(name, (-2, -1)) for name in ("fft2", "ifft2", "rfft2", "irfft2", "hfft2",
                                               "ihfft2")]
fftshift, ifftshift = fourier.fftshift, fourier.ifftshift
