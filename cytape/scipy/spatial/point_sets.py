"""Distances and alignment of sets of points."""

from typing import Any

import numpy as np
import scipy.spatial as _scipys

import cytape.numpy as cnp
from cytape.ops.calls.operands import is_tensor, joined, values_of
from cytape.ops.submodules.point_distances import cdist


def distance_matrix(x: Any, y: Any, p: float = 2.0, threshold: int = 1000000) -> Any:
    """Return Minkowski distances of all pairs, as `scipy.spatial.distance_matrix`.

    Examples
    --------
    >>> import cytape
    >>> from cytape.scipy.spatial import distance_matrix
    >>> cytape.grad(lambda x: distance_matrix(x, [[0.0, 0.0]])[0, 0])(np.array([[3.0, 4.0]]))
    array([[0.6, 0.8]])
    """
    x, y = joined(x), joined(y)
    if not is_tensor(x) and not is_tensor(y):
        return _scipys.distance_matrix(x, y, p, threshold)
    x, y = cnp.asarray(x), cnp.asarray(y)
    if x.shape[1] != y.shape[1]:
        raise ValueError(f"x contains {x.shape[1]}-dimensional vectors but y contains "
                         f"{y.shape[1]}-dimensional vectors")
    return cdist(x, y, "chebyshev") if p == np.inf else cdist(x, y, "minkowski", p=p)


def minkowski_distance(x: Any, y: Any, p: float = 2.0) -> Any:
    """Return distances of points along the last axis, as `scipy.spatial.minkowski_distance`."""
    x, y = joined(x), joined(y)
    if not is_tensor(x) and not is_tensor(y):
        return _scipys.minkowski_distance(x, y, p)
    return cnp.linalg.norm(cnp.asarray(y, float) - cnp.asarray(x, float), p, -1)


def procrustes(data1: Any, data2: Any) -> Any:
    """Return two aligned sets of points and their disparity, as `scipy.spatial.procrustes`.

    Examples
    --------
    >>> import cytape
    >>> from cytape.scipy.spatial import procrustes
    >>> square = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])
    >>> cytape.grad(lambda x: procrustes(square, x)[2])(2 * square).round(9) + 0.0
    array([[0., 0.],
           [0., 0.],
           [0., 0.],
           [0., 0.]])
    """
    data1, data2 = joined(data1), joined(data2)
    if not is_tensor(data1) and not is_tensor(data2):
        return _scipys.procrustes(data1, data2)
    known = [values_of(data) for data in (data1, data2)]
    if not any(data is None for data in known):
        _scipys.procrustes(*known)  # raises SciPy's errors
    first, second = (cnp.asarray(data, float) for data in (data1, data2))
    first, second = (data - cnp.mean(data, 0) for data in (first, second))
    first, second = (data / cnp.linalg.norm(data) for data in (first, second))
    u, scales, vh = cnp.linalg.svd(first.T @ second, full_matrices=False)
    second = second @ (u @ vh).T * cnp.sum(scales)
    return first, second, cnp.sum((first - second)**2)
