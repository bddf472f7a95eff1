"""Linear algebra, differentiable, with the names of `scipy.linalg`.

Names without derivatives here are SciPy's own.
"""

from typing import Any as _Any

import scipy.linalg as _scipys

from cytape.ops.scipy_linalg import *  # noqa: F403
from cytape.scipy.linalg.general_functions import funm as funm


def __getattr__(name: str) -> _Any:
    return getattr(_scipys, name)


def __dir__() -> list[str]:
    return list(_scipys.__all__)
