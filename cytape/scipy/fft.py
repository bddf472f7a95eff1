"""Fourier, cosine, sine and Hankel transforms, differentiable, with the names of `scipy.fft`.

Names without derivatives here are SciPy's own.
"""

from typing import Any as _Any

import scipy.fft as _scipys

from cytape.ops.signals.cosine_transforms import *  # noqa: F403
from cytape.ops.signals.fourier_transforms import *  # noqa: F403


def __getattr__(name: str) -> _Any:
    return getattr(_scipys, name)


def __dir__() -> list[str]:
    return list(_scipys.__all__)
