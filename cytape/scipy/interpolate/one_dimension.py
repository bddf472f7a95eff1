"""`interp1d` of tensors."""

from typing import Any

import numpy as np
import scipy.interpolate as _scipys

import cytape.numpy as cnp
from cytape.ops.calls.operands import is_tensor, joined
from cytape.ops.shaping import extents
from cytape.scipy.interpolate.basis_splines import make_interp_spline
from cytape.scipy.interpolate.tensor_data import (
    column,
    is_symbolic,
    outside,
    plain,
    tensors_of,
    to_axis,
)

DEGREES = {"zero": 0, "slinear": 1, "quadratic": 2, "cubic": 3}


class interp1d(_scipys.interp1d):  # noqa: N801 (SciPy's name)
    """Interpolation of a function of one variable, as `scipy.interpolate.interp1d`.

    Has derivatives in the data and in the points of a call. Those of steps ("nearest", "previous",
    "next", "zero") in the points are 0.

    Examples
    --------
    >>> import cytape
    >>> import numpy as np
    >>> from cytape.scipy.interpolate import interp1d
    >>> cytape.grad(lambda y: interp1d([0, 1], y)(0.25))(np.array([1.0, 2.0]))
    array([0.75, 0.25])
    """

    def __init__(
        self, x: Any, y: Any, kind: Any = "linear", axis: int = -1, copy: Any = True,
        bounds_error: Any = None, fill_value: Any = np.nan, assume_sorted: bool = False,
    ) -> None:
        extrapolates = isinstance(fill_value, str)
        parts = fill_value if isinstance(fill_value, tuple) else (fill_value,)
        known = fill_value if extrapolates else tuple(plain(part) for part in parts)
        super().__init__(
            plain(x, True), plain(y), kind, axis, copy, bounds_error,
            known if extrapolates or isinstance(fill_value, tuple) else known[0], assume_sorted)
        self.fills = None if extrapolates else (joined(parts[0]), joined(parts[-1]))
        self.tensors = tensors_of(x, y)
        self.degree: Any = DEGREES.get(kind, kind)
        if self.tensors is not None:
            x, y = self.tensors
            y = cnp.moveaxis(y, axis, 0)
            if not assume_sorted:
                order = cnp.argsort(x, kind="stable")
                x, y = cnp.take(x, order), cnp.take(y, order, axis=0)
            self.tensors = x, y

    def __call__(self, x: Any) -> Any:
        """Return values, as SciPy's method does."""
        x = joined(x)
        if self.tensors is None and not any(map(is_tensor, (x, *(self.fills or ())))):
            return super().__call__(x)
        points = cnp.asarray(x, float)
        flat = cnp.reshape(points, (-1,))
        xs, ys = self.tensors or (self.x, np.moveaxis(self.y, self.axis, 0))
        value = self._inside(xs, ys, flat)
        below, above = flat < xs[0], flat > xs[-1]
        if not self._extrapolate:
            if self.bounds_error and not is_symbolic(below, above):
                self._check_bounds(plain(flat))
            # Steps are extrapolated as far as they go.
            fills = self.fills or ((ys[0], np.nan) if self.degree == "next" else (np.nan, ys[-1]))
            for fill, is_out in zip(fills, (below, above), strict=True):
                value = outside(is_out, fill, flat, value)
        value = cnp.reshape(value, (*extents(points), *ys.shape[1:]))
        if self.degree == "linear":  # SciPy computes splines in double precision
            value = cnp.asarray(value, np.result_type(self.x, self.y, cnp.asarray(x).dtype))
        elif isinstance(self.degree, str):
            value = cnp.asarray(value, self.y.dtype)
        return to_axis(value, points.ndim, self.axis)

    def _inside(self, xs: Any, ys: Any, x: Any) -> Any:
        n = xs.shape[0]
        kind = self.degree
        if kind == "linear" and (n > 1 or self._extrapolate):
            place = cnp.clip(cnp.searchsorted(xs, x), 1, n - 1)
            low, high = cnp.take(xs, place - 1), cnp.take(xs, place)
            y_low, y_high = cnp.take(ys, place - 1, axis=0), cnp.take(ys, place, axis=0)
            return y_low + (y_high - y_low) * column((x - low) / (high - low), ys)
        if kind in ("nearest", "nearest-up"):
            middles = xs[1:] / 2.0 + xs[:-1] / 2.0
            side = "left" if kind == "nearest" else "right"
            place = cnp.clip(cnp.searchsorted(middles, x, side=side), 0, n - 1)
        elif kind in ("previous", "linear"):
            place = cnp.clip(cnp.searchsorted(xs, x, side="right") - 1, 0, n - 1)
        elif kind == "next":
            place = cnp.clip(cnp.searchsorted(xs, x, side="left"), 0, n - 1)
        else:
            return make_interp_spline(xs, ys, kind, check_finite=False)(x)
        return cnp.take(ys, place, axis=0) + column(0.0 * x, ys)
