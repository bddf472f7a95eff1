"""Random numbers as tensors: ``cytape.numpy.random``, with the names of NumPy's generators.

What is not here is ``numpy.random``'s own.
"""

from typing import Any as _Any

import numpy as _numpy

from cytape.ops.random import *  # noqa: F403
from cytape.ops.random import __all__ as _ours


def __getattr__(name: str) -> _Any:
    return getattr(_numpy.random, name)


def __dir__() -> list[str]:
    return sorted({*_ours, *_numpy.random.__all__})
