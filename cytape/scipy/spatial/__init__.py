"""Spatial algorithms with the names of `scipy.spatial`; distances are differentiable.

Names without derivatives here are SciPy's own.
"""

from typing import Any as _Any

import scipy.spatial as _scipys

from cytape.scipy.spatial import distance as distance
from cytape.scipy.spatial.point_sets import distance_matrix as distance_matrix
from cytape.scipy.spatial.point_sets import minkowski_distance as minkowski_distance
from cytape.scipy.spatial.point_sets import procrustes as procrustes


def __getattr__(name: str) -> _Any:
    return getattr(_scipys, name)


def __dir__() -> list[str]:
    return list(_scipys.__all__)
