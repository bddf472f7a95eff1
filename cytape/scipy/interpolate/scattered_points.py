"""Interpolation of tensors between scattered points.

The triangulation, and which point is nearest, are constants.
"""

from typing import Any

import numpy as np
import scipy.interpolate as _scipys

import cytape.numpy as cnp
from cytape.ops.calls.operands import is_tensor, joined
from cytape.ops.shaping import extents
from cytape.scipy.interpolate.cubic_triangles import CloughTocher2DInterpolator
from cytape.scipy.interpolate.one_dimension import interp1d
from cytape.scipy.interpolate.tensor_data import (
    coordinates,
    is_symbolic,
    looked_up,
    outside,
    plain,
    tensors_of,
)


def _known(name: str, *operands: Any) -> list:
    """Return the values of points, which must be known."""
    if is_symbolic(*operands):
        raise TypeError(
            f"{name} does not work on symbolic points: the triangulation needs their values. Build "
            "it outside of graphs and traced functions")
    return [plain(x) for x in operands]


class LinearNDInterpolator(_scipys.LinearNDInterpolator):
    """Linear interpolation in triangles, as `scipy.interpolate.LinearNDInterpolator`.

    Has derivatives in the points, the values and the points of a call.

    Examples
    --------
    >>> import cytape
    >>> import numpy as np
    >>> from cytape.scipy.interpolate import LinearNDInterpolator
    >>> points = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    >>> f = LinearNDInterpolator(points, [0.0, 2.0, 3.0])
    >>> cytape.grad(lambda x: f(x)[0])(np.array([[0.25, 0.25]]))
    array([[2., 3.]])
    """

    def __init__(
        self, points: Any, values: Any, fill_value: Any = np.nan, rescale: bool = False,
    ) -> None:
        values = joined(values)
        if not hasattr(points, "points"):  # no triangulation
            points = coordinates(points)
        known = _known("LinearNDInterpolator", points)[0] if is_tensor(points) else points
        super().__init__(known, plain(values), fill_value, rescale)
        points = getattr(points, "points", points)
        self.has_tensors = any(map(is_tensor, (points, values)))
        self._data = tensors_of(points, values) or (np.asarray(points), np.asarray(values))
        self._fill = fill_value

    def __call__(self, *args: Any) -> Any:
        """Return values, as SciPy's method does."""
        if not self.has_tensors and not is_tensor(args):
            return super().__call__(*args)
        points, values = self._data
        xi = coordinates(args, points.shape[1])
        flat = cnp.reshape(xi, (-1, xi.shape[-1]))
        simplex = looked_up(self._simplices, flat, np.intp)
        corners = cnp.take(self.tri.simplices, cnp.maximum(simplex, 0), axis=0)
        vertices = cnp.take(points, corners, axis=0)
        edges = cnp.swapaxes(vertices[:, 1:] - vertices[:, :1], 1, 2)
        shares = cnp.linalg.solve(edges, (flat - vertices[:, 0])[..., None])[..., 0]
        shares = cnp.concatenate([1 - cnp.sum(shares, 1, keepdims=True), shares], 1)
        of_corners = cnp.take(values, corners, axis=0)
        found = cnp.sum(
            of_corners * cnp.reshape(shares, (*extents(shares), *[1] * (of_corners.ndim - 2))), 1)
        found = outside(simplex < 0, self._fill, cnp.sum(flat, 1), found)
        return cnp.reshape(found, (*extents(xi)[:-1], *values.shape[1:]))

    def _simplices(self, points: np.ndarray) -> np.ndarray:
        """Return the number of the simplex of each point, -1 outside."""
        if getattr(self, "scale", None) is not None:
            points = (points - self.offset) / self.scale
        return self.tri.find_simplex(points).astype(np.intp)


class NearestNDInterpolator(_scipys.NearestNDInterpolator):
    """Value of the nearest point, as `scipy.interpolate.NearestNDInterpolator`.

    Has derivatives in the values; those in points are 0.

    Examples
    --------
    >>> import cytape
    >>> import numpy as np
    >>> from cytape.scipy.interpolate import NearestNDInterpolator
    >>> points = np.array([[0.0, 0.0], [1.0, 0.0]])
    >>> cytape.grad(lambda values: NearestNDInterpolator(points, values)(0.9, 0.1))(np.ones(2))
    array([0., 1.])
    """

    tensors: Any = None  # values

    def __init__(self, x: Any, y: Any, rescale: bool = False, tree_options: Any = None) -> None:
        x, y = coordinates(x), joined(y)
        known, = _known("NearestNDInterpolator", x)
        super().__init__(known, plain(y), rescale, tree_options)
        self.tensors = tensors_of(y)
        self._moving = x if is_tensor(x) else None

    def __call__(self, *args: Any, **options: Any) -> Any:
        """Return values, as SciPy's method does."""
        if self.tensors is None and not is_tensor(args) and self._moving is None:
            return super().__call__(*args, **options)
        xi = coordinates(args, self.points.shape[1])
        positions = _scipys.NearestNDInterpolator.__new__(_scipys.NearestNDInterpolator)
        positions.__dict__.update(
            {**self.__dict__, "values": np.arange(len(self.values), dtype=float)})
        place = looked_up(
            lambda points: _scipys.NearestNDInterpolator.__call__(positions, points, **options),
            xi, float)
        is_near = ~cnp.isnan(place)
        values = self.tensors[0] if self.tensors is not None else self.values
        found = cnp.take(values, cnp.where(is_near, place, 0).astype(int), axis=0)
        if options:  # a bound of the distance
            shape = (*extents(is_near), *[1] * (found.ndim - is_near.ndim))
            found = cnp.where(cnp.reshape(is_near, shape), found, np.nan)
        for moving in (xi, self._moving):
            if is_tensor(moving):
                found = found + 0.0 * cnp.sum(moving)
        return found


def griddata(
    points: Any, values: Any, xi: Any, method: str = "linear", fill_value: Any = np.nan,
    rescale: bool = False,
) -> Any:
    """Interpolate between scattered points, as `scipy.interpolate.griddata`.

    The methods "linear" and "nearest" have derivatives in the values, the points and `xi`; "cubic"
    has in the values and `xi`, in one dimension also in the points.

    Examples
    --------
    >>> import cytape
    >>> import numpy as np
    >>> from cytape.scipy.interpolate import griddata
    >>> points = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    >>> cytape.grad(lambda v: griddata(points, v, np.array([[0.25, 0.25]]))[0])(np.ones(3))
    array([0.5 , 0.25, 0.25])
    """
    if not any(map(is_tensor, (points, values, xi))):
        return _scipys.griddata(points, values, xi, method, fill_value, rescale)
    points = coordinates(points)
    if points.shape[-1] == 2 and method == "cubic":
        return CloughTocher2DInterpolator(points, values, fill_value, rescale=rescale)(xi)
    if points.shape[-1] == 1:
        if isinstance(xi, tuple):
            xi, = xi
        fill = "extrapolate" if method == "nearest" else fill_value
        return interp1d(
            cnp.reshape(points, (-1,)), joined(values), method, 0, bounds_error=False,
            fill_value=fill)(xi)
    if method == "nearest":
        return NearestNDInterpolator(points, values, rescale)(xi)
    if method == "linear":
        return LinearNDInterpolator(points, values, fill_value, rescale)(xi)
    raise TypeError(
        'griddata of tensors has the methods "linear", "nearest" and, in one and two dimensions, '
        f'"cubic", got {method!r} in {points.shape[-1]} dimensions')
