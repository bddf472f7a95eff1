"""Spatial algorithms with the names of `scipy.spatial`; distances are differentiable.

Names without derivatives here are SciPy's own.
"""

from typing import Any as _Any

import scipy.spatial as _scipys

from cytape.scipy.spatial import distance as distance


def __getattr__(name: str) -> _Any:
    return getattr(_scipys, name)


def __dir__() -> list[str]:
    return list(_scipys.__all__)
