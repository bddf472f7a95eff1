"""Interpolation of tensors on a rectangular grid."""

from itertools import product
from typing import Any

import numpy as np
import scipy.interpolate as _scipys

import cytape.numpy as cnp
from cytape.ops.calls.operands import is_tensor
from cytape.ops.shaping import extents
from cytape.scipy.interpolate.basis_splines import (
    basis,
    intervals,
    make_interp_spline,
    spline_knots,
)
from cytape.scipy.interpolate.cubic_splines import monotone_slopes
from cytape.scipy.interpolate.piecewise_polynomials import hermite_coefficients
from cytape.scipy.interpolate.tensor_data import (
    column,
    coordinates,
    is_symbolic,
    outside,
    plain,
    tensors_of,
    where_valid,
)

DEGREES = {"slinear": 1, "cubic": 3, "quintic": 5}


def _coefficients(values: Any, axes: list, k: int) -> Any:
    """Return the coefficients of the products of B-splines that interpolate on a grid."""
    for i, x in enumerate(axes):
        c = make_interp_spline(x, cnp.moveaxis(values, i, 0), k).c
        values = cnp.moveaxis(c, 0, i)
    return values


def _taps(x: Any, points: Any, k: int, nu: int) -> list:
    """Return the places and factors of the k + 1 coefficients that count at each point."""
    t = spline_knots(x, k, False)
    place = intervals(t, k, points)
    factors = basis(points, t, k, place, nu) if nu <= k else [0 * points] * (k + 1)
    return [(place - k + j, factor) for j, factor in enumerate(factors)]


def _monotone(x: Any, y: Any, points: Any, has_own: bool) -> Any:
    """Interpolate along the first axis; with `has_own`, data of each point along the second."""
    c = hermite_coefficients(x, y, monotone_slopes(x, y))
    last = x.shape[0] - 2
    place = cnp.clip(cnp.searchsorted(x, points, side="right") - 1, 0, last)
    distance = points - cnp.take(x, place)
    if has_own:
        c = cnp.swapaxes(c, 1, 2)
        c = cnp.reshape(c, (4, -1, *c.shape[3:]))
        place = place + (last + 1) * (cnp.cumsum(cnp.ones_like(place)) - 1)
    c = cnp.take(c, place, axis=1)
    distance = column(distance, c[0])
    return ((c[0] * distance + c[1]) * distance + c[2]) * distance + c[3]


class RegularGridInterpolator(_scipys.RegularGridInterpolator):
    """Interpolation on a grid, as `scipy.interpolate.RegularGridInterpolator`.

    Has derivatives in the values, the grid and the points of a call. `solver` has no effect on
    tensors: the systems are solved along one axis after the other.

    Examples
    --------
    >>> import cytape
    >>> import numpy as np
    >>> from cytape.scipy.interpolate import RegularGridInterpolator
    >>> cytape.grad(RegularGridInterpolator(([0, 1], [0, 1]), np.eye(2)))(np.array([0.25, 0.5]))
    array([ 0. , -0.5])
    """

    tensors: Any = None  # values, then the axes of the grid

    def __init__(
        self, points: Any, values: Any, method: str = "linear", bounds_error: bool = True,
        fill_value: Any = np.nan, **options: Any,
    ) -> None:
        tensors, known = tensors_of(values, *points), tuple(plain(x, True) for x in points)
        is_spline = tensors is not None and method in DEGREES
        if is_spline:  # SciPy need not solve
            self._validate_grid_dimensions(known, method)
        super().__init__(
            known, plain(values), "linear" if is_spline else method, bounds_error,
            plain(fill_value), **({} if is_spline else options))
        self.method = method
        if tensors is None:
            return
        values, *axes = tensors
        for i in self._descending_dimensions:
            axes[i], values = cnp.flip(axes[i]), cnp.flip(values, i)
        for i, axis in enumerate(axes):
            if is_symbolic(axis):
                falls = axis[0] > axis[-1]
                axes[i] = cnp.where(falls, cnp.flip(axis), axis)
                values = where_valid(cnp.where(falls, cnp.flip(values, i), values), axes[i])
        self.tensors = values, *axes

    def __call__(self, xi: Any, method: Any = None, *, nu: Any = None) -> Any:
        """Return values, as SciPy's method does."""
        if self.tensors is None and not is_tensor(xi):
            return super().__call__(xi, method, nu=nu)
        method = self.method if method is None else method
        if method not in self._ALL_METHODS:
            raise ValueError(f"Method '{method}' is not defined")
        if method in self._SPLINE_METHODS:
            self._validate_grid_dimensions(self._grid, method)
        if nu is not None and method not in DEGREES:
            raise ValueError(f"Can only compute derivatives for methods {set(DEGREES)}, got "
                             f"{method = }.")
        single = method in ("nearest", "pchip") or method.endswith("_legacy")
        method = method.removesuffix("_legacy")
        n = len(self._grid)
        xi = coordinates(xi, n)
        if xi.shape[-1] != n:
            raise ValueError("The requested sample points xi have dimension "
                             f"{xi.shape[-1]} but this RegularGridInterpolator has dimension {n}")
        values, *axes = self.tensors or (self._values, *self._grid)
        flat = cnp.reshape(xi, (-1, n))
        if self.bounds_error and not is_symbolic(flat):
            self._prepare_xi(plain(flat))  # raises SciPy's error
        corners: list = []
        is_out: Any = False
        k, trailing = DEGREES.get(method, 0), values.shape[n:]
        if k:
            values = _coefficients(values, axes, k)
        for i, axis in enumerate(axes):
            x, size = flat[:, i], axis.shape[0]
            is_out = is_out | (x < axis[0]) | (x > axis[-1])
            if k:
                corners.append(_taps(axis, x, k, 0 if nu is None else int(nu[i])))
                continue
            place = cnp.clip(cnp.searchsorted(axis, x, side="right") - 1, 0, max(size - 2, 0))
            if size == 1:
                corners.append([(place, cnp.ones_like(x))])
                continue
            low, high = cnp.take(axis, place), cnp.take(axis, place + 1)
            share = (x - low) / (high - low)
            if method == "nearest":
                corners.append([(cnp.where(share <= 0.5, place, place + 1), 1 + 0 * x)])
            else:
                corners.append([(place, 1 - share), (place + 1, share)])
        found: Any = 0.0
        table = cnp.reshape(values, (-1, *trailing))
        if method == "pchip":
            found, corners = cnp.moveaxis(values, n - 1, 0), [()]
            for i in range(n - 1, -1, -1):
                found = _monotone(axes[i], found, flat[:, i], i < n - 1)
                if i:
                    found = cnp.moveaxis(found, i, 0)
        for corner in product(*corners):
            place, weight = 0, 1.0
            for (i, part), axis in zip(corner, axes, strict=True):
                place, weight = place * axis.shape[0] + i, weight * part
            found = found + cnp.take(table, place, axis=0) * column(weight, table)
        fill = np.nan if self.bounds_error else self.fill_value  # in a graph errors are NaN
        if fill is not None and is_out is not False:
            found = outside(is_out, fill, cnp.sum(flat, 1), found)
        if nu is not None:  # a derivative need not read the point
            found = cnp.where(column(cnp.isnan(cnp.sum(flat, 1)), found), np.nan, found)
        if single:  # SciPy computes the others in double precision
            found = cnp.asarray(found, self._values.dtype)
        return cnp.reshape(found, (*extents(xi)[:-1], *trailing))


def interpn(
    points: Any, values: Any, xi: Any, method: str = "linear", bounds_error: bool = True,
    fill_value: Any = np.nan,
) -> Any:
    """Interpolate on a grid, as `scipy.interpolate.interpn`, with derivatives like the class.

    Examples
    --------
    >>> import cytape
    >>> from cytape.scipy.interpolate import interpn
    >>> cytape.grad(lambda x: interpn(([0.0, 1.0],), [0.0, 3.0], [x])[0])(0.5)
    np.float64(3.0)
    """
    if not any(map(is_tensor, (values, *points, xi))):
        return _scipys.interpn(points, values, xi, method, bounds_error, fill_value)
    return RegularGridInterpolator(points, values, method, bounds_error, fill_value)(
        coordinates(xi, len(points)))
