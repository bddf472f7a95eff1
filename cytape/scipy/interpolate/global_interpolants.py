"""Interpolants that use all data at each point: radial basis functions, one polynomial."""

from math import factorial
from typing import Any

import numpy as np
import scipy.interpolate as _scipys

import cytape.numpy as cnp
from cytape.autodiff.custom.custom_gradient import stop_gradient
from cytape.ops.calls.operands import is_tensor, joined
from cytape.ops.shaping import extents
from cytape.ops.submodules.point_distances import cdist
from cytape.scipy.interpolate.tensor_data import (
    column,
    is_symbolic,
    plain,
    tensors_of,
    to_axis,
)


def _thin_plate(s: Any) -> Any:
    return cnp.where(s == 0, 0.0, 0.5 * s * cnp.log(cnp.where(s == 0, 1.0, s)))


# Kernels that are smooth in the squared distance, and the others in the distance.
SQUARED = {
    "thin_plate_spline": _thin_plate,
    "multiquadric": lambda s: -cnp.sqrt(s + 1),
    "inverse_multiquadric": lambda s: 1 / cnp.sqrt(s + 1),
    "inverse_quadratic": lambda s: 1 / (s + 1),
    "gaussian": lambda s: cnp.exp(-s)}
PLAIN = {"linear": lambda r: -r, "cubic": lambda r: r**3, "quintic": lambda r: -r**5}


class RBFInterpolator(_scipys.RBFInterpolator):
    """Radial basis functions, as `scipy.interpolate.RBFInterpolator`.

    Has derivatives in the points, the data, `smoothing`, `epsilon` and the points of a call. The
    system is solved in the call.

    Examples
    --------
    >>> import cytape
    >>> import numpy as np
    >>> from cytape.scipy.interpolate import RBFInterpolator
    >>> y, x = np.array([[0.0], [1.0]]), np.array([[0.5]])
    >>> cytape.grad(lambda d: RBFInterpolator(y, d, kernel="linear")(x)[0])(np.ones(2))
    array([0.5, 0.5])
    """

    def __init__(self, y: Any, d: Any, neighbors: Any = None, smoothing: Any = 0.0,
                 kernel: str = "thin_plate_spline", epsilon: Any = None, degree: Any = None
                 ) -> None:
        operands = [joined(x) for x in (y, d, smoothing, epsilon)]
        self.has_tensors = any(map(is_tensor, operands))
        known = [x if x is None else plain(x) for x in operands]
        for i in (0, 3):
            if is_symbolic(operands[i]):
                known[i] = np.random.default_rng(0).uniform(0.5, 1, operands[i].shape)
        super().__init__(known[0], known[1], neighbors, known[2], kernel, known[3], degree)
        y, d, smoothing, epsilon = operands
        self._given = y, d, smoothing, 1.0 if epsilon is None else epsilon

    def _matrix(self, x: Any, y: Any, epsilon: Any) -> Any:
        if self.kernel in SQUARED:
            return SQUARED[self.kernel](epsilon * epsilon * cdist(x, y, "sqeuclidean"))
        return PLAIN[self.kernel](epsilon * cdist(x, y))

    def __call__(self, x: Any) -> Any:
        """Return values, as SciPy's method does."""
        x = joined(x)
        if not self.has_tensors and not is_tensor(x):
            return super().__call__(x)
        if self.neighbors is not None:
            raise TypeError("RBFInterpolator of tensors uses all points: leave neighbors out")
        y, d, smoothing, epsilon = [cnp.asarray(each, complex if np.iscomplexobj(each) else float)
                                    for each in self._given]
        x, n = cnp.asarray(x, float), y.shape[0]
        if x.ndim != 2 or x.shape[1] != y.shape[1]:
            raise ValueError(f"Expected the second axis of `x` to have length {y.shape[1]}.")
        low, high = (stop_gradient(f(y, axis=0)) for f in (cnp.min, cnp.max))
        scale = cnp.where(high == low, 1.0, (high - low) / 2)

        def monomials(points: Any) -> Any:
            points = (points - (high + low) / 2) / scale
            return cnp.prod(points[:, None] ** np.asarray(self.powers, int), -1)

        of_points, size = monomials(y), len(self.powers)
        system = self._matrix(y, y, epsilon) + cnp.diag(cnp.broadcast_to(smoothing, (n,)))
        system = cnp.concatenate([
            cnp.concatenate([system, of_points], 1),
            cnp.concatenate([of_points.T, np.zeros((size, size))], 1)])
        trailing = d.shape[1:]
        right = cnp.concatenate([cnp.reshape(d, (n, -1)), np.zeros((size, int(np.prod(trailing))))])
        c = cnp.linalg.solve(system, right)
        found = cnp.concatenate([self._matrix(x, y, epsilon), monomials(x)], 1) @ c
        return cnp.reshape(found, (extents(x)[0], *trailing))


class _Polynomial:
    """Polynomial through points, in Newton's form."""

    data: Any = None

    def _set(self, xi: Any, yi: Any, axis: int) -> None:
        tensors = tensors_of(xi, yi)
        self.has_tensors = tensors is not None
        x, y = tensors or (np.asarray(xi, float), np.asarray(yi))
        self.data = x, cnp.moveaxis(y, axis, 0), axis % y.ndim

    def _coefficients(self, x: Any, y: Any) -> list:
        """Return divided differences; derivatives follow a value at a repeated point."""
        nodes, n = plain(x, True), x.shape[0]
        c: list = []
        row: list = []
        for k in range(n):
            s = 0
            while s < k and nodes[k - s - 1] == nodes[k]:
                s += 1
            new = [y[k] / factorial(s)]
            for i in range(k - s):
                new.append(((row[i + 1] if s else c[i]) - new[i]) / (x[i] - x[k]))
            row = new
            c.append(new[k - s])
        return c

    def derivatives(self, x: Any, der: Any = None) -> Any:
        """Return the value and derivatives, as SciPy's method does."""
        if not self.has_tensors and not is_tensor(x):
            return super().derivatives(x, der)  # type: ignore[misc]
        nodes, y, axis = self.data
        x = cnp.asarray(joined(x), float)
        flat, count = cnp.reshape(x, (-1,)), nodes.shape[0] if der is None else der
        c = self._coefficients(nodes, y)
        found = [c[-1] + 0 * column(flat, y)] + [0 * column(flat, y) + 0 * c[-1]] * (count - 1)
        for i in range(len(c) - 2, -1, -1):
            distance = column(flat - nodes[i], y)
            for m in range(count - 1, -1, -1):
                found[m] = found[m] * distance + (m * found[m - 1] if m else c[i])
        return cnp.stack([to_axis(cnp.reshape(value, (*extents(x), *y.shape[1:])), x.ndim, axis)
                          for value in found])

    def __call__(self, x: Any) -> Any:
        """Return values, as SciPy's method does."""
        if not self.has_tensors and not is_tensor(x):
            return super().__call__(x)  # type: ignore[misc]
        return self.derivatives(x, 1)[0]

    def derivative(self, x: Any, der: int = 1) -> Any:
        """Return a derivative, as SciPy's method does."""
        if not self.has_tensors and not is_tensor(x):
            return super().derivative(x, der)  # type: ignore[misc]
        return self.derivatives(x, der + 1)[der]


class KroghInterpolator(_Polynomial, _scipys.KroghInterpolator):
    """Polynomial through points and derivatives, as `scipy.interpolate.KroghInterpolator`.

    Has derivatives in the data and in the points of a call. Which points are repeated is constant.

    Examples
    --------
    >>> import cytape
    >>> from cytape.scipy.interpolate import KroghInterpolator
    >>> cytape.grad(KroghInterpolator([0, 0, 1], [0.0, 1.0, 3.0]))(1.0)
    np.float64(5.0)
    """

    def __init__(self, xi: Any, yi: Any, axis: int = 0) -> None:
        super().__init__(plain(xi, True), plain(yi), axis)
        self._set(joined(xi), joined(yi), axis)


class BarycentricInterpolator(_Polynomial, _scipys.BarycentricInterpolator):
    """Polynomial through points, as `scipy.interpolate.BarycentricInterpolator`.

    Has derivatives in the data and in the points of a call. Tensors are interpolated by divided
    differences, which lose digits for many points.

    Examples
    --------
    >>> import cytape
    >>> from cytape.scipy.interpolate import BarycentricInterpolator
    >>> cytape.grad(BarycentricInterpolator([0, 1, 2], [0.0, 1.0, 4.0]))(1.0)
    np.float64(2.0)
    """

    def __init__(self, xi: Any, yi: Any = None, axis: int = 0, **options: Any) -> None:
        self.has_tensors = is_tensor(joined(xi)) or is_tensor(joined(yi))
        if self.has_tensors:
            if yi is None:
                raise TypeError("BarycentricInterpolator of tensors needs yi")
            options = {"wi": np.ones(len(xi))}  # SciPy's weights have no use
        super().__init__(plain(xi, True), None if yi is None else plain(yi), axis, **options)
        if yi is not None:
            self._set(joined(xi), joined(yi), axis)
