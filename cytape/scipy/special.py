"""Special functions, differentiable, with the names of `scipy.special`.

Names without derivatives here are SciPy's own.
"""

from typing import Any as _Any

import scipy.special as _scipys

from cytape.ops import special as _ours
from cytape.ops.special import *  # noqa: F403


def __getattr__(name: str) -> _Any:
    return getattr(_scipys, name)


def __dir__() -> list[str]:
    return sorted({*_ours.__dict__, *_scipys.__all__})
