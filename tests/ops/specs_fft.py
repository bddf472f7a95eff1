"""Records of Fourier transforms."""

import numpy as np

from cytape.ops.submodules import cut_or_pad, fourier
from tests.ops.op_specs import FLOATS, FLOATS_AND_COMPLEX, OpSpec, case

LENGTHS = [
    case((5, 2), axis=0), case((2, 6)), case((5,), n=3, norm="ortho"),
    case((2, 4), n=7, norm="forward"), case((4, 2, 3), n=4, axis=1, norm="backward"),
    case((3, 2), n=1, axis=0, norm="ortho"), case((3, 0, 2), axis=0), case((2, 3), n=2)]
SEVERAL = [
    case((2, 3, 4)), case((2, 3, 4), axes=(2, 0), norm="ortho"),
    case((2, 3, 4), s=(5, 2), axes=(0, 2)),
    case((2, 4, 3), s=(3, -1), axes=(-1, 1), norm="forward"), case((3, 3), axes=(1,))]
DTYPES = {"rfft": FLOATS, "rfft2": FLOATS, "rfftn": FLOATS, "ihfft": FLOATS}
OP = {"fft": "FFT", "ifft": "FFT", "rfft": "RFFT", "irfft": "IRFFT"}


def record(name, cases):
    return OpSpec(OP.get(name, name), getattr(fourier, name), getattr(np.fft, name), cases,
                  dtypes=DTYPES.get(name, FLOATS_AND_COMPLEX))


def with_length(x, axis, n):
    indices = np.arange(n)
    inside = np.take(x, np.minimum(indices, x.shape[axis] - 1), axis)
    mask = (indices < x.shape[axis]).reshape([-1 if i == axis else 1 for i in range(x.ndim)])
    return np.where(mask, inside, np.zeros((), x.dtype))


SPECS = [
    *[record(name, LENGTHS) for name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")],
    *[record(name, SEVERAL) for name in ("fftn", "ifftn", "rfftn", "irfftn")],
    *[record(name, [case((2, 3, 4)), case((3, 2, 4), s=(2, 3)), case((2, 3), axes=(1, 0))])
      for name in ("fft2", "ifft2", "rfft2", "irfft2")],
    OpSpec("FFTShift", fourier.fftshift, np.fft.fftshift,
           [case((3, 4)), case((5,), axes=0), case((2, 3, 4), axes=(0, -1)), case((0, 3))],
           dtypes=FLOATS_AND_COMPLEX),
    OpSpec("ifftshift", fourier.ifftshift, np.fft.ifftshift, [case((3, 4)), case((2, 5), axes=[1])],
           dtypes=FLOATS_AND_COMPLEX),
    OpSpec("CutOrPad", cut_or_pad.cut_or_pad_op, with_length,
           [case((3, 2), axis=0, n=2), case((2, 3), axis=1, n=5)], dtypes=FLOATS_AND_COMPLEX),
]
