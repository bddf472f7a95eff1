"""Interpolation of tensors on a rectangular grid."""

from itertools import product
from typing import Any

import numpy as np
import scipy.interpolate as _scipys

import cytape.numpy as cnp
from cytape.ops.calls.operands import is_tensor
from cytape.ops.shaping import extents
from cytape.scipy.interpolate.tensor_data import (
    column,
    coordinates,
    is_symbolic,
    outside,
    plain,
    tensors_of,
    where_valid,
)

METHODS = ("linear", "nearest", "slinear")


class RegularGridInterpolator(_scipys.RegularGridInterpolator):
    """Interpolation on a grid, as `scipy.interpolate.RegularGridInterpolator`.

    The methods "linear", "slinear" and "nearest" have derivatives in the values, the grid and the
    points of a call.

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
        super().__init__(
            tuple(plain(x, True) for x in points), plain(values), method, bounds_error,
            plain(fill_value), **options)
        tensors = tensors_of(values, *points)
        if tensors is None:
            return
        _check_method(method)
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
        _check_method(method)
        if nu is not None:
            raise TypeError("RegularGridInterpolator of tensors does not take nu: differentiate it")
        n = len(self._grid)
        xi = coordinates(xi, n)
        if xi.shape[-1] != n:
            raise ValueError("The requested sample points xi have dimension "
                             f"{xi.shape[-1]} but this RegularGridInterpolator has dimension {n}")
        values, *axes = self.tensors or (self._values, *self._grid)
        flat = cnp.reshape(xi, (-1, n))
        if self.bounds_error and not is_symbolic(flat):
            self._prepare_xi(plain(flat))  # raises SciPy's error
        corners, is_out = [], False
        for i, axis in enumerate(axes):
            x, size = flat[:, i], axis.shape[0]
            is_out = is_out | (x < axis[0]) | (x > axis[-1])
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
        trailing = values.shape[n:]
        table = cnp.reshape(values, (-1, *trailing))
        for corner in product(*corners):
            place, weight = 0, 1.0
            for (i, part), axis in zip(corner, axes, strict=True):
                place, weight = place * axis.shape[0] + i, weight * part
            found = found + cnp.take(table, place, axis=0) * column(weight, table)
        fill = np.nan if self.bounds_error else self.fill_value  # in a graph errors are NaN
        if fill is not None and is_out is not False:
            found = outside(is_out, fill, cnp.sum(flat, 1), found)
        return cnp.reshape(found, (*extents(xi)[:-1], *trailing))


def _check_method(method: str) -> None:
    if method not in METHODS:
        raise TypeError(
            f"RegularGridInterpolator of tensors has the methods {', '.join(METHODS)}, got "
            f"{method!r}: interpolate along one axis after the other with make_interp_spline")


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
