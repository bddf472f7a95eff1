"""B-splines of tensors, by de Boor's algorithm."""

from typing import Any

import numpy as np
import scipy.interpolate as _scipys

import cytape.numpy as cnp
from cytape.ops.calls.operands import is_tensor, joined
from cytape.ops.shaping import extents
from cytape.scipy.interpolate.piecewise_polynomials import wrapped
from cytape.scipy.interpolate.tensor_data import (
    column,
    outside,
    plain,
    quotient,
    tensors_of,
    to_axis,
    where_valid,
)
from cytape.scipy.linalg import solve_banded
from cytape.tensor import convert_to_tensor


def intervals(t: Any, k: int, x: Any) -> Any:
    """Return the position of the knot before each point; outside that of the outermost interval."""
    n = t.shape[0] - k - 1
    return cnp.searchsorted(t[k + 1:n], x, side="right") + k


def local_knots(t: Any, k: int, place: Any) -> Any:
    """Return the 2 k knots around each interval, in columns."""
    return [cnp.take(t, place + i) for i in range(1 - k, k + 1)]


def basis(x: Any, t: Any, k: int, place: Any, nu: int = 0) -> list:
    """Return the k + 1 basis functions of degree k that are not 0 in the interval of each point.

    Or their derivatives of order `nu`. De Boor, "A Practical Guide to Splines" (2001), X.
    """
    knots = local_knots(t, k, place)
    values: list = [cnp.ones_like(x)]
    for degree in range(1, k + 1):
        left, right = knots[k - degree:k], knots[k:k + degree]
        shares = [quotient(value, high - low)
                  for value, low, high in zip(values, left, right, strict=True)]
        if degree > k - nu:
            ups = [degree * share for share in shares]
            downs = [-up for up in ups]
        else:
            ups = [share * (x - low) for share, low in zip(shares, left, strict=True)]
            downs = [share * (high - x) for share, high in zip(shares, right, strict=True)]
        values = [downs[0], *[up + down for up, down in zip(ups, downs[1:], strict=False)], ups[-1]]
    return values


def coefficients_of_derivative(t: Any, c: Any, k: int) -> tuple:
    """Return knots, coefficients and degree of the derivative of a spline."""
    n = t.shape[0] - k - 1
    spans = column(t[k + 1:n + k] - t[1:n], c)
    return t[1:-1], quotient(k * cnp.diff(c[:n], axis=0), spans), k - 1


def evaluated(t: Any, c: Any, k: int, x: Any, nu: int, extrapolate: Any, axis: int) -> Any:
    """Return values of a spline, or of its derivative of order `nu`."""
    x = cnp.asarray(joined(x), float)
    flat, n = cnp.reshape(x, (-1,)), t.shape[0] - k - 1
    low, high = t[k], t[n]
    if extrapolate == "periodic":
        flat, _ = wrapped(flat, low, high)
    trailing = c.shape[1:]
    if nu > k:
        value = convert_to_tensor(np.zeros((flat.shape[0], *trailing)))
    else:
        inside, (t_nu, c_nu, k_nu) = flat, (t, c, k)
        for _ in range(nu):
            t_nu, c_nu, k_nu = coefficients_of_derivative(t_nu, c_nu, k_nu)
        place = intervals(t_nu, k_nu, inside)
        knots = local_knots(t_nu, k_nu, place)
        values = [cnp.take(c_nu, place - k_nu + j, axis=0) for j in range(k_nu + 1)]
        for degree in range(1, k_nu + 1):
            for j in range(k_nu, degree - 1, -1):
                start, end = knots[j - 1], knots[j + k_nu - degree]
                share = column((flat - start) / (end - start), c)
                values[j] = (1 - share) * values[j - 1] + share * values[j]
        value = values[k_nu]
    if not extrapolate:
        value = outside((flat < low) | (flat > high), np.nan, flat, value)
    return to_axis(cnp.reshape(value, (*extents(x), *trailing)), x.ndim, axis)


class BSpline(_scipys.BSpline):
    """B-spline, as `scipy.interpolate.BSpline`.

    Has derivatives in the coefficients, the knots and the points of a call.

    Examples
    --------
    >>> import cytape
    >>> import numpy as np
    >>> from cytape.scipy.interpolate import BSpline
    >>> cytape.grad(lambda c: BSpline([0, 0, 1, 1], c, 1)(0.25))(np.ones(2))
    array([0.75, 0.25])
    """

    tensors: Any = None  # knots and coefficients
    k: int
    axis: int
    extrapolate: Any

    def __init__(self, t: Any, c: Any, k: int, extrapolate: Any = True, axis: int = 0) -> None:
        super().__init__(plain(t, True), plain(c), k, extrapolate, axis)
        tensors = tensors_of(t, c)
        if tensors is not None:
            t, c = tensors
            self.tensors = t, where_valid(cnp.moveaxis(c, axis, 0), t, repeated=True)

    @classmethod
    def made(cls, t: Any, c: Any, k: int, extrapolate: Any, axis: int) -> Any:
        """Return a spline of tensors, whose coefficients have the interpolated axis first."""
        found = cls.construct_fast(plain(t, True), plain(c), k, extrapolate, axis)
        found.tensors = t, c
        return found

    @property
    def t(self) -> Any:
        """Knots."""
        return super().t if self.tensors is None else self.tensors[0]

    @property
    def c(self) -> Any:
        """Coefficients."""
        return super().c if self.tensors is None else self.tensors[1]

    def __call__(self, x: Any, nu: int = 0, extrapolate: Any = None) -> Any:
        """Return values, as SciPy's method does."""
        if self.tensors is None and not is_tensor(x):
            return super().__call__(x, nu, extrapolate)
        extrapolate = self.extrapolate if extrapolate is None else extrapolate
        return evaluated(self.t, self.c, self.k, x, nu, extrapolate, self.axis)

    def derivative(self, nu: int = 1) -> Any:
        """Return the derivative, as SciPy's method does."""
        if self.tensors is None:
            return super().derivative(nu)
        if nu > self.k:
            raise ValueError(f"Order of derivative (n = {nu}) must be <= order of spline (k = "
                             f"{self.k})")
        (t, c), k = self.tensors, self.k
        for _ in range(nu):
            t, c, k = coefficients_of_derivative(t, c, k)
        return self.made(t, c, k, self.extrapolate, self.axis)

    def antiderivative(self, nu: int = 1) -> Any:
        """Return the antiderivative, as SciPy's method does."""
        if self.tensors is None:
            return super().antiderivative(nu)
        (t, c), k = self.tensors, self.k
        for _ in range(nu):
            n = t.shape[0] - k - 1
            parts = c[:n] * column(t[k + 1:] - t[:n], c) / (k + 1)
            c = cnp.concatenate([cnp.zeros_like(c[:1]), cnp.cumsum(parts, 0)])
            t, k = cnp.concatenate([t[:1], t, t[-1:]]), k + 1
        extrapolate = False if self.extrapolate == "periodic" else self.extrapolate
        return self.made(t, c, k, extrapolate, self.axis)

    def integrate(self, a: Any, b: Any, extrapolate: Any = None) -> Any:
        """Integrate, as SciPy's method does."""
        if self.tensors is None and not (is_tensor(a) or is_tensor(b)):
            return super().integrate(a, b, extrapolate)
        extrapolate = self.extrapolate if extrapolate is None else extrapolate
        n = self.t.shape[0] - self.k - 1
        start, end = self.t[self.k], self.t[n]
        integral = self.antiderivative()

        def up_to(limit: Any) -> Any:
            if extrapolate == "periodic":
                limit, count = wrapped(limit, start, end)
                return integral(limit, extrapolate=True) + count * (
                    integral(end, extrapolate=True) - integral(start, extrapolate=True))
            if not extrapolate:
                limit = cnp.clip(limit, start, end)
            return integral(limit, extrapolate=True)

        return up_to(b) - up_to(a)


def _conditions(spec: Any, shape: tuple) -> list:
    """Return pairs of order and value of the derivatives at an end."""
    if spec is None:
        return []
    if isinstance(spec, str):
        return [({"clamped": 1, "natural": 2}[spec], np.zeros(shape))]
    return [tuple(pair) for pair in spec]


def make_interp_spline(
    x: Any, y: Any, k: int = 3, t: Any = None, bc_type: Any = None, axis: int = 0,
    check_finite: bool = True,
) -> Any:
    """Return the interpolating B-spline, as `scipy.interpolate.make_interp_spline`.

    Has derivatives in the data, the knots and the derivatives in `bc_type`. Periodic splines of
    tensors are there as `CubicSpline`.

    Examples
    --------
    >>> import cytape
    >>> import numpy as np
    >>> from cytape.scipy.interpolate import make_interp_spline
    >>> cytape.grad(lambda y: make_interp_spline([0, 1, 2], y, k=2)(0.5))(np.ones(3))
    array([ 0.375,  0.75 , -0.125])
    """
    sides = bc_type if isinstance(bc_type, (tuple, list)) else (bc_type, bc_type)
    values = [pair[1] for side in sides if isinstance(side, (tuple, list)) for pair in side]
    given = tensors_of(x, y, *values, *([] if t is None else [t]))
    if given is None:
        found = _scipys.make_interp_spline(x, y, k, t, bc_type, axis, check_finite)
        return BSpline.construct_fast(*found.tck, found.extrapolate, found.axis)
    if isinstance(bc_type, str) and bc_type == "periodic":
        raise TypeError(
            "make_interp_spline of tensors makes no periodic splines: use CubicSpline(x, y, "
            'bc_type="periodic")')
    known = tuple(
        [(pair[0], plain(pair[1])) for pair in side] if isinstance(side, (tuple, list)) else side
        for side in sides) if values else bc_type
    checked = _scipys.make_interp_spline(  # raises SciPy's errors
        plain(x, True), plain(y), k, None if t is None else plain(t, True), known, axis,
        check_finite)
    if k == 1 and t is None and checked.t.size < 4:
        raise ValueError("make_interp_spline of tensors needs two points for k = 1, got one")
    x, y, *rest = given
    y, axis = cnp.moveaxis(y, axis, 0), checked.axis
    if t is not None:
        t = rest.pop()
    replaced = iter(rest)
    if bc_type == "not-a-knot":
        sides = (None, None)
    left, right = ([
        (order, next(replaced) if isinstance(side, (tuple, list)) else value)
        for order, value in _conditions(side, y.shape[1:])] for side in sides)
    is_simple = k == 0 or (k == 1 and t is None)
    if t is None:
        t = spline_knots(x, k, bool(left or right))
    if is_simple:
        return BSpline.made(t, where_valid(y, x), k, True, axis)
    n = t.shape[0] - k - 1
    rows = []  # position of the first coefficient, and the factors of k + 1 of them
    for point, conditions in (x[:1], left), (x, [(0, None)]), (x[-1:], right):
        place = intervals(t, k, point)
        rows += [(place - k, cnp.stack(basis(point, t, k, place, nu), 1))
                 for nu, _ in conditions]
    first = cnp.concatenate([place for place, _ in rows])
    factors = cnp.concatenate([factor for _, factor in rows])
    columns = first[:, None] + np.arange(k + 1)
    places = (k + np.arange(n)[:, None] - columns) * n + columns
    banded = convert_to_tensor(np.zeros((2 * k + 1) * n)).at[cnp.reshape(places, (-1,))].add(
        cnp.reshape(factors, (-1,)))
    values = cnp.concatenate([
        *[cnp.reshape(value, (1, *y.shape[1:])) for _, value in left], y,
        *[cnp.reshape(value, (1, *y.shape[1:])) for _, value in right]])
    banded = cnp.reshape(banded, (2 * k + 1, n))
    c = solve_banded((k, k), banded, cnp.reshape(values, (n, -1)))
    c = where_valid(cnp.reshape(c, (n, *y.shape[1:])), x)
    return BSpline.made(t, c, k, True, axis)


def spline_knots(x: Any, k: int, with_derivatives: bool) -> Any:
    """Return SciPy's knots for interpolation at some points."""
    if k == 0:
        return cnp.concatenate([x, x[-1:]])
    inner = x[1:-1]
    if not with_derivatives and k > 1:
        middle = x if k % 2 else (x[1:] + x[:-1]) / 2
        margin = (k + 1) // 2 if k % 2 else k // 2
        inner = middle[margin:middle.shape[0] - margin]
    return cnp.concatenate([x[:1]] * (k + 1) + [inner] + [x[-1:]] * (k + 1))
