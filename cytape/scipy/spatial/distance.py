"""Distances between points, differentiable, with the names of `scipy.spatial.distance`.

Names without derivatives here are SciPy's own.
"""

from typing import Any as _Any

import scipy.spatial.distance as _scipys

from cytape.ops.calls.operands import is_tensor as _is_tensor
from cytape.ops.submodules import point_distances as _tables
from cytape.ops.submodules.point_distances import cdist as cdist
from cytape.ops.submodules.point_distances import pdist as pdist
from cytape.ops.submodules.point_distances import squareform as squareform


def _of_two_points(name: str, *defaults: tuple) -> _Any:
    theirs = getattr(_scipys, name)
    names = [parameter for parameter, _ in defaults]

    def distance(u: _Any, v: _Any, *args: _Any, **kwargs: _Any) -> _Any:
        if not any(map(_is_tensor, (u, v, *args, *kwargs.values()))):
            return theirs(u, v, *args, **kwargs)
        if len(args) > len(names) or not kwargs.keys() <= set(names[len(args):]):
            theirs([0.0], [0.0], *args, **kwargs)  # raises
        given = dict(defaults) | dict(zip(names, args, strict=False)) | kwargs
        return _tables.distance(name, u, v, given)

    distance.__name__ = distance.__qualname__ = name
    distance.__doc__ = f"""Return the distance of two points, as `scipy.spatial.distance.{name}`.

    Derivatives are those of `cdist`.
    """
    return distance


braycurtis = _of_two_points("braycurtis", ("w", None))
canberra = _of_two_points("canberra", ("w", None))
chebyshev = _of_two_points("chebyshev", ("w", None))
cityblock = _of_two_points("cityblock", ("w", None))
correlation = _of_two_points("correlation", ("w", None))
cosine = _of_two_points("cosine", ("w", None))
euclidean = _of_two_points("euclidean", ("w", None))
mahalanobis = _of_two_points("mahalanobis", ("VI", None))
minkowski = _of_two_points("minkowski", ("p", 2), ("w", None))
seuclidean = _of_two_points("seuclidean", ("V", None))
sqeuclidean = _of_two_points("sqeuclidean", ("w", None))


def jensenshannon(
    p: _Any, q: _Any, base: float | None = None, *, axis: int = 0, keepdims: bool = False
) -> _Any:
    """Return Jensen-Shannon distances, as `scipy.spatial.distance.jensenshannon`.

    Derivatives are those of `cdist`.
    """
    if not _is_tensor(p) and not _is_tensor(q):
        return _scipys.jensenshannon(p, q, base, axis=axis, keepdims=keepdims)
    return _tables.jensenshannon(p, q, base, axis, keepdims)


def __getattr__(name: str) -> _Any:
    return getattr(_scipys, name)


def __dir__() -> list[str]:
    return list(_scipys.__all__)
