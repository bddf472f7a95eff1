"""Interpolating and least-squares splines of tensors, by the names of FITPACK's functions.

They are B-splines. Smoothing splines, whose knots depend on the data, are refused.
"""

from typing import Any

import numpy as np
import scipy.interpolate as _scipys

import cytape.numpy as cnp
from cytape.ops.calls.operands import is_tensor, joined
from cytape.ops.shaping import extents
from cytape.scipy.interpolate.basis_splines import (
    BSpline,
    basis,
    intervals,
    make_interp_spline,
    spline_knots,
)
from cytape.scipy.interpolate.tensor_data import (
    is_symbolic,
    plain,
    tensors_of,
    where_valid,
)
from cytape.tensor import convert_to_tensor


def make_lsq_spline(
    x: Any, y: Any, t: Any, k: int = 3, w: Any = None, axis: int = 0, check_finite: bool = True,
    *, method: str = "qr",
) -> Any:
    """Return the B-spline of least squares, as `scipy.interpolate.make_lsq_spline`.

    Has derivatives in the data, the knots and the weights.

    Examples
    --------
    >>> import cytape
    >>> import numpy as np
    >>> from cytape.scipy.interpolate import make_lsq_spline
    >>> cytape.grad(lambda y: make_lsq_spline([0, 1, 2], y, [0, 0, 2, 2], 1)(1))(np.ones(3))
    array([0.33333333, 0.33333333, 0.33333333])
    """
    tensors = tensors_of(x, y, t, *([] if w is None else [w]))
    known = [plain(x, True), plain(y), plain(t, True), k, None if w is None else plain(w) + (
        1.0 if is_symbolic(w) else 0.0)]
    if tensors is None or not is_symbolic(x, t):
        found = _scipys.make_lsq_spline(*known, axis, check_finite, method=method)
        if tensors is None:
            return BSpline.construct_fast(*found.tck, found.extrapolate, found.axis)
    x, y, t, *weights = tensors
    y, n = cnp.moveaxis(y, axis, 0), t.shape[0] - k - 1
    place = intervals(t, k, x)
    columns = (place - k)[:, None] + np.arange(k + 1)
    rows = np.arange(x.shape[0])[:, None]
    design = convert_to_tensor(np.zeros(x.shape[0] * n)).at[cnp.reshape(
        rows * n + columns, (-1,))].add(cnp.reshape(cnp.stack(basis(x, t, k, place), 1), (-1,)))
    design = cnp.reshape(design, (-1, n))
    values = cnp.reshape(y, (x.shape[0], -1))
    if weights:
        design, values = design * weights[0][:, None], values * weights[0][:, None]
    c = cnp.linalg.lstsq(design, values, rcond=None)[0]
    return BSpline.made(
        t, where_valid(cnp.reshape(c, (n, *y.shape[1:])), x), k, True, axis % len(y.shape))


def make_smoothing_spline(
    x: Any, y: Any, w: Any = None, lam: Any = None, **options: Any,
) -> Any:
    """Return a smoothing spline, as `scipy.interpolate.make_smoothing_spline`.

    Has derivatives in `y`, for a given `lam`. The coefficients are linear in `y`; their matrix,
    which has as many rows and columns as there are points, is computed once per call.

    Examples
    --------
    >>> import cytape
    >>> import numpy as np
    >>> from cytape.scipy.interpolate import make_smoothing_spline
    >>> x = np.arange(5.0)
    >>> cytape.grad(lambda y: make_smoothing_spline(x, y, lam=1e9)(2.0))(x).round(6)  # a mean
    array([0.2, 0.2, 0.2, 0.2, 0.2])
    """
    if not any(map(is_tensor, (x, y, w, lam))):
        found = _scipys.make_smoothing_spline(x, y, w, lam, **options)
        return BSpline.construct_fast(*found.tck, found.extrapolate, found.axis)
    if any(map(is_tensor, (x, w, lam))) or lam is None:
        raise TypeError(
            "make_smoothing_spline has derivatives in y only, and needs lam, a number: without, it "
            "chooses one that depends on y. make_lsq_spline has derivatives in all data")
    y, axis = joined(y), options.get("axis", 0)
    matrix = _scipys.make_smoothing_spline(x, np.eye(len(x)), w, lam)
    c = cnp.tensordot(matrix.c, cnp.moveaxis(y, axis, 0), 1)
    return BSpline.made(matrix.t, c, 3, True, axis % y.ndim)


def _beyond(x: Any, low: Any, high: Any, ext: Any) -> Any:
    """Return points and where the value is 0, for the points beyond the ends."""
    x = cnp.asarray(x, float)
    is_out = (x < low) | (x > high)
    if ext in (3, "const"):
        return cnp.clip(x, low, high), False
    if ext in (2, "raise"):
        if is_symbolic(is_out):
            raise TypeError('ext="raise" needs the values of points: choose another ext in graphs')
        if np.any(plain(is_out)):
            raise ValueError("Error code returned by splev: 1")
    elif ext not in (0, 1, "extrapolate", "zeros"):
        raise ValueError(f"Unknown extrapolation mode {ext}.")
    return x, is_out if ext in (1, "zeros") else False


def _value(spline: Any, x: Any, nu: int, ext: Any) -> Any:
    if not 0 <= nu <= spline.k:
        raise ValueError(f"0<=der={nu}<=k={spline.k} must hold")
    if nu and ext in (3, "const"):
        ext = 0  # as in SciPy: derivatives are extrapolated
    x, is_zero = _beyond(x, spline.t[spline.k], spline.t[-spline.k - 1], ext)
    found = spline(x, nu, True)
    return found if is_zero is False else cnp.where(is_zero, 0.0, found)


def _interpolated(x: Any, y: Any, k: int, low: Any = None, high: Any = None) -> Any:
    if low is None and high is None:
        return make_interp_spline(x, y, k)
    x = cnp.asarray(joined(x), float)
    t = spline_knots(x, k, False)
    ends = [t[:1] if low is None else np.reshape(low, (1,)),
            t[-1:] if high is None else np.reshape(high, (1,))]
    t = cnp.concatenate([ends[0]] * (k + 1) + [t[k + 1:-k - 1]] + [ends[1]] * (k + 1))
    return make_interp_spline(x, y, k, t)


class _Curve:
    """Spline of one variable, of tensors or arrays."""

    spline: Any = None  # B-spline of tensors

    def _as_spline(self) -> Any:
        if self.spline is not None:
            return self.spline
        t, c, k = self._eval_args
        return BSpline(t, c[:len(t) - k - 1], k)

    def __call__(self, x: Any, nu: int = 0, ext: Any = None) -> Any:
        """Return values, as SciPy's method does."""
        if self.spline is None and not is_tensor(x):
            return super().__call__(x, nu, ext)  # type: ignore[misc]
        return _value(
            self._as_spline(), x, nu,
            self.ext if ext is None else ext)

    def integral(self, a: Any, b: Any) -> Any:
        """Integrate, as SciPy's method does: the spline is 0 beyond its ends."""
        if self.spline is None and not (is_tensor(a) or is_tensor(b)):
            return super().integral(a, b)  # type: ignore[misc]
        return self._as_spline().integrate(a, b, False)

    def derivative(self, n: int = 1) -> Any:
        """Return the derivative, as SciPy's method does."""
        return self._derived(super().derivative(n), "derivative", n)  # type: ignore[misc]

    def antiderivative(self, n: int = 1) -> Any:
        """Return the antiderivative, as SciPy's method does."""
        return self._derived(super().antiderivative(n), "antiderivative", n)  # type: ignore[misc]

    def _derived(self, theirs: Any, name: str, n: int) -> Any:
        found = UnivariateSpline._from_tck(theirs._eval_args, theirs.ext)
        if self.spline is not None:
            found.spline = getattr(self.spline, name)(n)
        return found

    def __getattribute__(self, name: str) -> Any:
        if name in REFUSED and object.__getattribute__(self, "spline") is not None:
            raise TypeError(f"{name} is not supported for splines of tensors")
        return super().__getattribute__(name)


REFUSED = {"derivatives", "roots", "get_coeffs", "get_knots", "get_residual",
           "set_smoothing_factor"}


class InterpolatedUnivariateSpline(_Curve, _scipys.InterpolatedUnivariateSpline):
    """Interpolating spline, as `scipy.interpolate.InterpolatedUnivariateSpline`.

    Has derivatives in the data and in the points of a call.

    Examples
    --------
    >>> import cytape
    >>> import numpy as np
    >>> from cytape.scipy.interpolate import InterpolatedUnivariateSpline
    >>> cytape.grad(InterpolatedUnivariateSpline([0, 1, 2], [0.0, 1.0, 4.0], k=2))(1.5)
    np.float64(3.0)
    """

    def __init__(self, x: Any, y: Any, w: Any = None, bbox: Any = (None, None), k: int = 3,
                 ext: Any = 0, check_finite: bool = False) -> None:
        super().__init__(plain(x, True), plain(y), plain(w) if is_tensor(w) else w, list(bbox), k,
                         ext, check_finite)
        tensors = tensors_of(x, y)
        if tensors is not None:
            self.spline = _interpolated(x, y, k, *bbox)


class UnivariateSpline(_Curve, _scipys.UnivariateSpline):
    """Smoothing spline, as `scipy.interpolate.UnivariateSpline`.

    Has derivatives in the points of a call, and for ``s=0`` in the data.

    Examples
    --------
    >>> import cytape
    >>> import numpy as np
    >>> from cytape.scipy.interpolate import UnivariateSpline
    >>> x = np.linspace(0, 3, 10)
    >>> cytape.grad(UnivariateSpline(x, x**3))(2.0).round(6)
    np.float64(12.0)
    """

    def __init__(self, x: Any, y: Any, w: Any = None, bbox: Any = (None, None), k: int = 3,
                 s: Any = None, ext: Any = 0, check_finite: bool = False) -> None:
        tensors = tensors_of(x, y, *([w] if is_tensor(w) else []))
        if tensors is not None and (is_tensor(s) or s != 0):
            raise TypeError(
                "UnivariateSpline of tensors takes s=0: the knots of smoothing splines depend on "
                "the data. Use make_lsq_spline with fixed knots")
        super().__init__(plain(x, True), plain(y), plain(w) if is_tensor(w) else w, list(bbox), k,
                         s, ext, check_finite)
        if tensors is not None:
            self.spline = _interpolated(x, y, k, *bbox)


def splrep(x: Any, y: Any, w: Any = None, xb: Any = None, xe: Any = None, k: int = 3,
           task: int = 0, s: Any = None, t: Any = None, full_output: int = 0, per: int = 0,
           quiet: int = 1) -> Any:
    """Return knots, coefficients and degree of a spline, as `scipy.interpolate.splrep`.

    Interpolation has derivatives in the data.

    Examples
    --------
    >>> import cytape
    >>> import numpy as np
    >>> from cytape.scipy.interpolate import splev, splrep
    >>> x = np.arange(5.0)
    >>> cytape.grad(lambda y: splev(2.0, splrep(x, y)))(x).round(6) + 0.0
    array([0., 0., 1., 0., 0.])
    """
    if not any(map(is_tensor, (x, y, w, t))):
        return _scipys.splrep(x, y, w, xb, xe, k, task, s, t, full_output, per, quiet)
    if task != 0 or t is not None or full_output or per or not (
            s is None and w is None or not is_tensor(s) and s == 0):
        raise TypeError("splrep of tensors interpolates only (s=0, no knots, not periodic): use "
                        "make_lsq_spline with fixed knots, or CubicSpline for periodic ones")
    _scipys.splrep(plain(x, True), plain(y), None, xb, xe, k, 0, 0)  # raises SciPy's errors
    spline = _interpolated(x, y, k, xb, xe)
    return spline.t, cnp.concatenate([spline.c, np.zeros(k + 1)]), k


def _of_tck(tck: Any) -> Any:
    if isinstance(tck, tuple):
        t, c, k = tck
        return BSpline(t, c[:len(t) - k - 1], k)
    return tck if isinstance(tck, BSpline) else BSpline(
        tck.t, tck.c, tck.k, tck.extrapolate, tck.axis)


def _has_tensors(tck: Any, *others: Any) -> bool:
    parts = tck if isinstance(tck, tuple) else tck.tck
    return any(map(is_tensor, (*parts, *others)))


def splev(x: Any, tck: Any, der: int = 0, ext: int = 0) -> Any:
    """Return values of a spline or its derivatives, as `scipy.interpolate.splev`."""
    if not _has_tensors(tck, x):
        return _scipys.splev(x, tck, der, ext)
    return _value(_of_tck(tck), x, der, ext)


def splint(a: Any, b: Any, tck: Any, full_output: int = 0) -> Any:
    """Integrate a spline, as `scipy.interpolate.splint`."""
    if not _has_tensors(tck, a, b):
        return _scipys.splint(a, b, tck, full_output)
    return _of_tck(tck).integrate(a, b, False)


def _other_degree(name: str, tck: Any, n: int) -> Any:
    if not _has_tensors(tck):
        return getattr(_scipys, name)(tck, n)
    spline = _of_tck(tck)
    spline = spline.derivative(n) if name == "splder" else spline.antiderivative(n)
    if not isinstance(tck, tuple):
        return spline
    c = spline.c
    return spline.t, cnp.concatenate([c, np.zeros((spline.k + 1, *c.shape[1:]))]), spline.k


def splder(tck: Any, n: int = 1) -> Any:
    """Return the derivative of a spline, as `scipy.interpolate.splder`."""
    return _other_degree("splder", tck, n)


def splantider(tck: Any, n: int = 1) -> Any:
    """Return the antiderivative of a spline, as `scipy.interpolate.splantider`."""
    return _other_degree("splantider", tck, n)


class RectBivariateSpline(_scipys.RectBivariateSpline):
    """Spline on a rectangular grid, as `scipy.interpolate.RectBivariateSpline`.

    Has derivatives in the points of a call, and for ``s=0`` in the data.

    Examples
    --------
    >>> import cytape
    >>> import numpy as np
    >>> from cytape.scipy.interpolate import RectBivariateSpline
    >>> x = np.arange(5.0)
    >>> cytape.grad(lambda t: RectBivariateSpline(x, x, np.outer(x, x**2)).ev(t, 2.0))(1.5).round(9)
    np.float64(4.0)
    """

    has_tensors = False

    def __init__(self, x: Any, y: Any, z: Any, bbox: Any = (None,) * 4, kx: int = 3, ky: int = 3,
                 s: Any = 0, maxit: int = 20) -> None:
        tensors = tensors_of(x, y, z)
        if tensors is not None and (is_tensor(s) or s != 0 or any(
                end is not None for end in bbox)):
            raise TypeError(
                "RectBivariateSpline of tensors takes s=0 and no bbox: the knots of smoothing "
                "splines depend on the data")
        super().__init__(plain(x, True), plain(y, True), plain(z), list(bbox), kx, ky, s, maxit)
        if tensors is None:
            tx, ty, c = self.tck
            self._parts = (tx, ty), np.reshape(c, (len(tx) - kx - 1, len(ty) - ky - 1))
            return
        self.has_tensors = True
        x, y, z = tensors
        first = make_interp_spline(x, z, kx)
        both = make_interp_spline(y, cnp.swapaxes(first.c, 0, 1), ky)
        self._parts = (first.t, both.t), cnp.swapaxes(both.c, 0, 1)

    def __call__(self, x: Any, y: Any, dx: int = 0, dy: int = 0, grid: bool = True) -> Any:
        """Return values, as SciPy's method does."""
        if not self.has_tensors and not is_tensor(x) and not is_tensor(y):
            return super().__call__(x, y, dx, dy, grid)
        knots, c = self._parts
        points = [cnp.asarray(x, float), cnp.asarray(y, float)]
        if grid:
            points = [cnp.reshape(points[0], (-1, 1)), cnp.reshape(points[1], (1, -1))]
        taps = []
        for t, k, at, nu in zip(knots, self.degrees, points, (dx, dy), strict=True):
            at = cnp.clip(at, t[k], t[-k - 1])
            flat = cnp.reshape(at, (-1,))
            place = intervals(t, k, flat)
            factors = basis(flat, t, k, place, nu) if nu <= k else [0 * flat] * (k + 1)
            taps.append([(cnp.reshape(place - k + j, extents(at)),
                          cnp.reshape(factor, extents(at))) for j, factor in enumerate(factors)])
        table, found = cnp.reshape(c, (-1,)), 0.0
        for i, weight in taps[0]:
            for j, other in taps[1]:
                found = found + cnp.take(table, i * c.shape[1] + j) * (weight * other)
        return found

    def ev(self, xi: Any, yi: Any, dx: int = 0, dy: int = 0) -> Any:
        """Return values at points, as SciPy's method does."""
        return self(xi, yi, dx, dy, False)

    def integral(self, xa: Any, xb: Any, ya: Any, yb: Any) -> Any:
        """Integrate over a rectangle, as SciPy's method does."""
        if not self.has_tensors and not any(map(is_tensor, (xa, xb, ya, yb))):
            return super().integral(xa, xb, ya, yb)
        (tx, ty), c = self._parts
        line = BSpline(tx, c, self.degrees[0]).integrate(xa, xb, False)
        return BSpline(ty, line, self.degrees[1]).integrate(ya, yb, False)

    def __getattribute__(self, name: str) -> Any:
        if name in ("partial_derivative", "get_coeffs", "get_knots", "get_residual") and (
                object.__getattribute__(self, "has_tensors")):
            raise TypeError(f"{name} is not supported for splines of tensors: pass dx and dy")
        return super().__getattribute__(name)
