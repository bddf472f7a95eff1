"""Linear algebra, differentiable: ``cytape.numpy.linalg``, with the names of `numpy.linalg`.

All other names are those of ``numpy.linalg``.
"""

from typing import Any as _Any

import numpy as _numpy

from cytape.numpy.own_names import numpys as _numpys
from cytape.ops.submodules.linear_algebra import *  # noqa: F403
from cytape.ops.submodules.linear_algebra import __all__ as _ours


def __getattr__(name: str) -> _Any:
    return _numpys(_numpy.linalg, name)


def __dir__() -> list[str]:
    return sorted({*_ours, *_numpy.linalg.__all__})
