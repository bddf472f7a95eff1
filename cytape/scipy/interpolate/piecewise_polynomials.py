"""Piecewise polynomials of tensors.

An object keeps SciPy's arrays for checks and for calls with arrays, and tensors beside them.
"""

from typing import Any

import numpy as np
import scipy.interpolate as _scipys
from scipy.special import poch

import cytape.numpy as cnp
from cytape.ops.calls.operands import is_tensor, joined
from cytape.ops.shaping import extents
from cytape.scipy.interpolate.tensor_data import (
    column,
    outside,
    plain,
    tensors_of,
    to_axis,
    where_valid,
)

MISSING = ("roots", "solve", "extend", "from_spline", "from_bernstein_basis")


def coefficients_of_derivative(c: Any, nu: int) -> Any:
    """Return the coefficients of the derivative of polynomials, of order `nu`."""
    k = c.shape[0] - nu
    if k <= 0:
        return cnp.zeros_like(c[:1])
    factors = poch(np.arange(k, 0, -1), nu)
    return c[:k] * factors.reshape((-1,) + (1,) * (c.ndim - 1))


def horner(c: Any, s: Any) -> Any:
    """Return the values of polynomials with coefficients along the first axis."""
    value = c[0]
    for coefficient in c[1:]:
        value = value * s + coefficient
    return value


def pieces(x: Any, points: Any) -> Any:
    """Return the positions of the pieces that points are in; outside of all the outermost ones."""
    inner, known = x[1:-1], plain(x, increasing=True)
    if known[-1] < known[0]:
        inner, points = -inner, -points
    return cnp.searchsorted(inner, points, side="right")


def wrapped(points: Any, start: Any, end: Any) -> tuple:
    """Return points moved by whole periods to the first one, and the numbers of periods."""
    count = cnp.floor((points - start) / (end - start))
    return points - count * (end - start), count


def evaluated(c: Any, x: Any, points: Any, nu: int, extrapolate: Any, axis: int) -> Any:
    """Return values of a piecewise polynomial, or of its derivative of order `nu`."""
    points = cnp.asarray(joined(points), float)
    flat = cnp.reshape(points, (-1,))
    if extrapolate == "periodic":
        flat, _ = wrapped(flat, x[0], x[-1])
    place = pieces(x, flat)
    chosen = cnp.take(c, place, axis=1)
    value = horner(
        coefficients_of_derivative(chosen, nu), column(flat - cnp.take(x, place), chosen[0]))
    if not extrapolate:
        low, high = cnp.minimum(x[0], x[-1]), cnp.maximum(x[0], x[-1])
        value = outside((flat < low) | (flat > high), np.nan, flat, value)
    return to_axis(cnp.reshape(value, (*extents(points), *c.shape[2:])), points.ndim, axis)


class TensorPieces:
    """Methods of a piecewise polynomial whose coefficients or breakpoints may be tensors."""

    tensors: Any = None  # coefficients and breakpoints

    def __call__(self, x: Any, nu: int = 0, extrapolate: Any = None) -> Any:
        """Return values, as SciPy's method does."""
        if self.tensors is None and not is_tensor(x):
            return super().__call__(x, nu, extrapolate)  # type: ignore[misc]
        if nu < 0:
            raise ValueError("Order of derivative cannot be negative")
        extrapolate = self.extrapolate if extrapolate is None else extrapolate
        return evaluated(self.c, self.x, x, nu, extrapolate, self.axis)

    def with_tensors(self, c: Any, x: Any) -> Any:
        """Return this object, with tensors as its coefficients and breakpoints."""
        self.tensors = c, x
        return self

    def made(self, c: Any, x: Any, extrapolate: Any) -> Any:
        """Return another object of this class."""
        found = self.construct_fast(plain(c), plain(x, True), extrapolate, self.axis)
        return found.with_tensors(c, x)

    @property
    def c(self) -> Any:
        """Coefficients."""
        return super().c if self.tensors is None else self.tensors[0]  # type: ignore[misc]

    @property
    def x(self) -> Any:
        """Breakpoints."""
        return super().x if self.tensors is None else self.tensors[1]  # type: ignore[misc]

    def derivative(self, nu: int = 1) -> Any:
        """Return the derivative, as SciPy's method does."""
        if nu < 0:
            return self.antiderivative(-nu)
        if self.tensors is None:
            return super().derivative(nu)  # type: ignore[misc]
        c, x = self.tensors
        return self.made(coefficients_of_derivative(c, nu), x, self.extrapolate)

    def antiderivative(self, nu: int = 1) -> Any:
        """Return the antiderivative, as SciPy's method does."""
        if nu <= 0:
            return self.derivative(-nu)
        if self.tensors is None:
            return super().antiderivative(nu)  # type: ignore[misc]
        c, x = self.tensors
        for _ in range(nu):
            powers = np.arange(c.shape[0], 0, -1).reshape((-1,) + (1,) * (c.ndim - 1))
            c = cnp.concatenate([c / powers, cnp.zeros_like(c[:1])])
            ends = cnp.cumsum(horner(c, column(cnp.diff(x), c[0])), 0)
            c = cnp.concatenate([c[:-1], cnp.concatenate([c[-1:, :1], ends[None, :-1]], 1)])
        return self.made(c, x, False if self.extrapolate == "periodic" else self.extrapolate)

    def integrate(self, a: Any, b: Any, extrapolate: Any = None) -> Any:
        """Integrate, as SciPy's method does."""
        if self.tensors is None and not (is_tensor(a) or is_tensor(b)):
            return super().integrate(a, b, extrapolate)  # type: ignore[misc]
        extrapolate = self.extrapolate if extrapolate is None else extrapolate
        integral = self.antiderivative()

        def up_to(end: Any) -> Any:
            if extrapolate != "periodic":
                return integral(end, extrapolate=bool(extrapolate))
            end, count = wrapped(end, self.x[0], self.x[-1])
            return integral(end, extrapolate=True) + count * integral(self.x[-1], extrapolate=True)

        found = up_to(b) - up_to(a)
        return found if cnp.ndim(found) else found[()]

    def __getattribute__(self, name: str) -> Any:
        if name in MISSING and object.__getattribute__(self, "tensors") is not None:
            raise TypeError(
                f"{name} is not supported for piecewise polynomials of tensors" + (
                    ": call cytape.scipy.optimize.brentq(lambda x, y: CubicSpline(grid, y)(x), a, "
                    "b, args=(y,))" if name in ("roots", "solve") else ""))
        return super().__getattribute__(name)


class PPoly(TensorPieces, _scipys.PPoly):
    """Piecewise polynomial, as `scipy.interpolate.PPoly`.

    Has derivatives in the coefficients, the breakpoints and the points of a call.

    Examples
    --------
    >>> import cytape
    >>> from cytape.scipy.interpolate import PPoly
    >>> cytape.grad(lambda x: PPoly([[1.0], [0.0]], [0.0, 1.0])(x))(0.5)
    np.float64(1.0)
    """

    def __init__(self, c: Any, x: Any, extrapolate: Any = None, axis: int = 0) -> None:
        super().__init__(plain(c), plain(x, True), extrapolate, axis)
        tensors = tensors_of(c, x)
        if tensors is not None:
            c, x = tensors
            self.with_tensors(where_valid(cnp.moveaxis(c, (axis, axis + 1), (0, 1)), x), x)


def hermite_coefficients(x: Any, y: Any, slopes: Any) -> Any:
    """Return coefficients of the cubics that have given values and slopes at the breakpoints."""
    dx = column(cnp.diff(x), y)
    slope = cnp.diff(y, axis=0) / dx
    t = (slopes[:-1] + slopes[1:] - 2 * slope) / dx
    return where_valid(
        cnp.stack([t / dx, (slope - slopes[:-1]) / dx - t, slopes[:-1], y[:-1]]), x)


class CubicHermiteSpline(TensorPieces, _scipys.CubicHermiteSpline):
    """Cubics with given values and slopes, as `scipy.interpolate.CubicHermiteSpline`.

    Has derivatives in the data and in the points of a call.

    Examples
    --------
    >>> import cytape
    >>> import numpy as np
    >>> from cytape.scipy.interpolate import CubicHermiteSpline
    >>> cytape.grad(lambda y: CubicHermiteSpline([0, 1], y, [0, 0])(0.5))(np.array([1.0, 2.0]))
    array([0.5, 0.5])
    """

    def __init__(
        self, x: Any, y: Any, dydx: Any, axis: int = 0, extrapolate: Any = None,
    ) -> None:
        super().__init__(plain(x, True), plain(y), plain(dydx), axis, extrapolate)
        tensors = tensors_of(x, y, dydx)
        if tensors is not None:
            x, y, dydx = tensors
            self.with_tensors(hermite_coefficients(
                x, cnp.moveaxis(y, axis, 0), cnp.moveaxis(dydx, axis, 0)), x)
