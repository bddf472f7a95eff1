"""Fourier transforms, differentiable: ``cytape.numpy.fft``, with the names of `numpy.fft`.

All other names are those of ``numpy.fft``.
"""

from typing import Any as _Any

import numpy as _numpy

from cytape.numpy.own_names import numpys as _numpys
from cytape.ops.submodules.fourier import *  # noqa: F403
from cytape.ops.submodules.fourier import __all__ as _ours


def __getattr__(name: str) -> _Any:
    return _numpys(_numpy.fft, name)


def __dir__() -> list[str]:
    return sorted({*_ours, *_numpy.fft.__all__})
