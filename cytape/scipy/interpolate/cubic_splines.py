"""Cubic interpolation of tensors: splines, monotone cubics, Akima's cubics."""

from typing import Any

import numpy as np
import scipy.interpolate as _scipys

import cytape.numpy as cnp
from cytape.ops.calls.operands import is_tensor
from cytape.scipy.interpolate.piecewise_polynomials import TensorPieces, hermite_coefficients
from cytape.scipy.interpolate.tensor_data import (
    column,
    plain,
    quotient,
    tensors_of,
    where_valid,
)
from cytape.scipy.linalg import solve_banded


def _solve(diagonals: list, right: Any) -> Any:
    """Solve a tridiagonal system for several right-hand sides."""
    shape = right.shape
    found = solve_banded((1, 1), cnp.stack(diagonals), cnp.reshape(right, (shape[0], -1)))
    return cnp.reshape(found, shape)


def _end(kind: Any, sign: int, dx: Any, slope: Any) -> tuple:
    """Return the diagonal element, its neighbour and the right-hand side of an end's equation.

    Quantities are listed from the end inwards.
    """
    d0, d1 = dx[0], dx[1] if len(dx) > 1 else None
    if isinstance(kind, str):  # not-a-knot
        both = d0 + d1
        right = ((d0 + 2 * both) * d1 * slope[0] + d0**2 * slope[1]) / both
        return d1, both, right
    order, value = kind
    value = cnp.asarray(value)
    if order == 1:
        return 1.0 + 0 * d0, 0 * d0, value + cnp.zeros_like(slope[0])
    return 2 * d0, d0, sign * 0.5 * value * d0**2 + 3 * slope[0] * d0


def spline_slopes(x: Any, y: Any, bc: list) -> Any:
    """Return the slopes of a cubic spline at the breakpoints."""
    n, dx = x.shape[0], cnp.diff(x)
    dxr = column(dx, y)
    slope = cnp.diff(y, axis=0) / dxr
    if n == 2:
        bc = [(1, slope[0]) if isinstance(kind, str) else kind for kind in bc]
    zero = cnp.zeros_like(dx[:1])
    middle = 2 * (dx[:-1] + dx[1:])
    right = 3 * (dxr[1:] * slope[:-1] + dxr[:-1] * slope[1:])
    if n == 3 and bc == ["not-a-knot", "not-a-knot"]:  # a parabola
        return _solve([
            cnp.concatenate([zero, zero + 1, dx[:1]]),
            cnp.concatenate([zero + 1, middle, zero + 1]),
            cnp.concatenate([dx[1:], zero + 1, zero]),
        ], cnp.concatenate([2 * slope[:1], right, 2 * slope[1:]]))
    if bc[0] == "periodic":
        return _periodic_slopes(dx, dxr, slope, middle, right)
    d_left, n_left, r_left = _end(bc[0], -1, dx, slope)
    d_right, n_right, r_right = _end(bc[1], 1, dx[::-1], slope[::-1])
    return _solve([
        cnp.concatenate([zero, n_left[None], dx[:-1]]),
        cnp.concatenate([d_left[None], middle, d_right[None]]),
        cnp.concatenate([dx[1:], n_right[None], zero]),
    ], cnp.concatenate([r_left[None], right, r_right[None]]))


def _periodic_slopes(dx: Any, dxr: Any, slope: Any, middle: Any, right: Any) -> Any:
    """Return the slopes of a periodic spline, by a tridiagonal system bordered by a row."""
    if dx.shape[0] == 1:
        return cnp.concatenate([slope, slope])
    if dx.shape[0] == 2:
        t = cnp.sum(slope / dxr, 0) / cnp.sum(1.0 / dxr, 0)
        return cnp.stack([t, t, t])
    zero = cnp.zeros_like(dx[:1])
    first = 3 * (dxr[0] * slope[-1] + dxr[-1] * slope[0])
    right = cnp.concatenate([first[None], right])
    system = [
        cnp.concatenate([zero, dx[-1:], dx[:-3]]),
        cnp.concatenate([2 * (dx[-1:] + dx[:1]), middle[:-1]]),
        cnp.concatenate([dx[1:-1], zero]),
    ]
    border = cnp.concatenate([-dx[:1], cnp.zeros(dx.shape[0] - 3), zero])
    border = border - cnp.concatenate([cnp.zeros(dx.shape[0] - 2), dx[-3:-2]])
    s1, s2 = _solve(system, right[:-1]), _solve(system, border)
    last = (right[-1] - dx[-2] * s1[0] - dx[-1] * s1[-1]) / (
        2 * (dx[-1] + dx[-2]) + dx[-2] * s2[0] + dx[-1] * s2[-1])
    inner = s1 + last * column(s2, s1)
    return cnp.concatenate([inner, last[None], inner[:1]])


def _kinds(bc_type: Any, shape: tuple) -> list:
    """Return the conditions at both ends: a name, or the order and value of a derivative."""
    kinds = [bc_type] * 2 if isinstance(bc_type, str) else list(bc_type)
    orders = {"natural": 2, "clamped": 1}
    return [(orders[kind], np.zeros(shape)) if kind in ("natural", "clamped") else kind
            if isinstance(kind, str) else tuple(kind) for kind in kinds]


class CubicSpline(TensorPieces, _scipys.CubicSpline):
    """Cubic spline, as `scipy.interpolate.CubicSpline`.

    Has derivatives in the data, in the derivatives in `bc_type` and in the points of a call.

    Examples
    --------
    >>> import cytape
    >>> import numpy as np
    >>> from cytape.scipy.interpolate import CubicSpline
    >>> cytape.grad(lambda y: CubicSpline([0, 1, 2], y)(0.5))(np.ones(3))
    array([ 0.375,  0.75 , -0.125])
    """

    def __init__(
        self, x: Any, y: Any, axis: int = 0, bc_type: Any = "not-a-knot", extrapolate: Any = None,
    ) -> None:
        known = bc_type if isinstance(bc_type, str) else tuple(
            kind if isinstance(kind, str) else (kind[0], plain(kind[1])) for kind in bc_type)
        super().__init__(plain(x, True), plain(y), axis, known, extrapolate)
        ends = [] if isinstance(bc_type, str) else [
            kind[1] for kind in bc_type if not isinstance(kind, str)]
        tensors = tensors_of(x, y, *ends)
        if tensors is None:
            return
        x, y, *ends = tensors
        y = cnp.moveaxis(y, axis, 0)
        bc = _kinds(bc_type, y.shape[1:])
        if ends and not isinstance(bc_type, str):
            values = iter(ends)
            bc = [kind if isinstance(given, str) else (given[0], next(values))
                  for kind, given in zip(bc, bc_type, strict=True)]
        c = hermite_coefficients(x, y, spline_slopes(x, y, bc))
        if bc[0] == "periodic":
            c = where_valid(c, x, cnp.all(cnp.abs(y[0] - y[-1]) <= 1e-15 * (1 + cnp.abs(y[0]))))
        self.with_tensors(c, x)


def _monotone_end(h0: Any, h1: Any, m0: Any, m1: Any) -> Any:
    """Return the slope at an end, by three points, so that the shape is kept."""
    d = ((2 * h0 + h1) * m0 - h0 * m1) / (h0 + h1)
    turns = cnp.sign(d) != cnp.sign(m0)
    is_steep = (cnp.sign(m0) != cnp.sign(m1)) & (cnp.abs(d) > 3.0 * cnp.abs(m0))
    return cnp.where(turns, 0.0, cnp.where(is_steep, 3.0 * m0, d))


def monotone_slopes(x: Any, y: Any) -> Any:
    """Return slopes at the breakpoints that keep the data's monotonicity."""
    h = column(cnp.diff(x), y)
    m = cnp.diff(y, axis=0) / h
    if y.shape[0] == 2:
        return cnp.concatenate([m, m])
    is_flat = (cnp.sign(m[1:]) != cnp.sign(m[:-1])) | (m[1:] == 0) | (m[:-1] == 0)
    w1, w2 = 2 * h[1:] + h[:-1], h[1:] + 2 * h[:-1]
    before, after = (cnp.where(is_flat, 1.0, part) for part in (m[:-1], m[1:]))
    inner = cnp.where(is_flat, 0.0, (w1 + w2) / (w1 / before + w2 / after))
    return cnp.concatenate([
        _monotone_end(h[0], h[1], m[0], m[1])[None], inner,
        _monotone_end(h[-1], h[-2], m[-1], m[-2])[None]])


class PchipInterpolator(TensorPieces, _scipys.PchipInterpolator):
    """Monotone cubics, as `scipy.interpolate.PchipInterpolator`.

    Has derivatives in the data and in the points of a call. Where data turn, the slope is 0, and so
    is its derivative.

    Examples
    --------
    >>> import cytape
    >>> import numpy as np
    >>> from cytape.scipy.interpolate import PchipInterpolator
    >>> cytape.grad(lambda y: PchipInterpolator([0, 1, 2], y)(0.5))(np.array([0.0, 1.0, 0.0]))
    array([ 0.3125,  0.75  , -0.0625])
    """

    def __init__(self, x: Any, y: Any, axis: int = 0, extrapolate: Any = None) -> None:
        super().__init__(plain(x, True), plain(y), axis, extrapolate)
        tensors = tensors_of(x, y)
        if tensors is not None:
            x, y = tensors
            y = cnp.moveaxis(y, axis, 0)
            self.with_tensors(hermite_coefficients(x, y, monotone_slopes(x, y)), x)


def akima_slopes(x: Any, y: Any, method: str) -> Any:
    """Return Akima's slopes at the breakpoints."""
    m = cnp.diff(y, axis=0) / column(cnp.diff(x), y)
    if y.shape[0] == 2:
        return cnp.concatenate([m, m])
    before = 2.0 * m[:1] - m[1:2]
    after = 2.0 * m[-1:] - m[-2:-1]
    m = cnp.concatenate([
        2.0 * before - m[:1], before, m, after, 2.0 * after - m[-1:]])
    change = cnp.abs(cnp.diff(m, axis=0))
    f1, f2 = change[2:], change[:-2]
    if method == "makima":
        level = cnp.abs(m[1:] + m[:-1])
        f1, f2 = f1 + 0.5 * level[2:], f2 + 0.5 * level[:-2]
    both = f1 + f2
    is_defined = both > 1e-9 * cnp.max(both)
    slopes = m[1:-2] + quotient(f2, cnp.where(is_defined, both, 0.0)) * (m[2:-1] - m[1:-2])
    return cnp.where(is_defined, slopes, 0.5 * (m[3:] + m[:-3]))


class Akima1DInterpolator(TensorPieces, _scipys.Akima1DInterpolator):
    """Akima's cubics, as `scipy.interpolate.Akima1DInterpolator`.

    Has derivatives in the data and in the points of a call. A slope is not differentiable where two
    differences of the data are equal: the derivative is that of `numpy.abs` there.

    Examples
    --------
    >>> import cytape
    >>> import numpy as np
    >>> from cytape.scipy.interpolate import Akima1DInterpolator
    >>> cytape.grad(Akima1DInterpolator([0, 1, 2], [0.0, 1.0, 4.0]))(0.5)
    np.float64(1.0)
    """

    def __init__(
        self, x: Any, y: Any, axis: int = 0, *, method: Any = "akima", extrapolate: Any = None,
    ) -> None:
        super().__init__(
            plain(x, True), plain(y), axis, method=method, extrapolate=extrapolate)
        tensors = tensors_of(x, y)
        if tensors is not None:
            x, y = tensors
            y = cnp.moveaxis(y, axis, 0)
            self.with_tensors(hermite_coefficients(x, y, akima_slopes(x, y, method)), x)


def pchip_interpolate(xi: Any, yi: Any, x: Any, der: Any = 0, axis: int = 0) -> Any:
    """Interpolate by monotone cubics, as `scipy.interpolate.pchip_interpolate`."""
    if not any(map(is_tensor, (xi, yi, x))):
        return _scipys.pchip_interpolate(xi, yi, x, der, axis)
    interpolator = PchipInterpolator(xi, yi, axis)
    if np.ndim(der) == 0:
        return interpolator(x, der)
    return [interpolator(x, nu) for nu in der]
