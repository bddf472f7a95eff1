"""Linear systems of the Jacobian of an equation, by the number and kind of its unknowns."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse.linalg
from scipy.linalg import lapack

from cytape.errors import NotDifferentiableError
from cytape.scipy.optimize.exact_jacobians import product_from_left

EPSILON = float(np.finfo(float).eps)
TOLERANCE = 1e-12  # of iterative solvers, relative to the right-hand side


class Diagonal:
    """System of a number, or of equations that are independent of each other."""

    def __init__(self, equation: Any, residual: Callable, x: np.ndarray) -> None:
        self._slopes = np.asarray(product_from_left(residual, x, np.ones_like(x)))
        if not np.all(np.abs(self._slopes) > 0):  # also NaN
            raise not_isolated(equation, "0 or NaN")

    def solve(self, b: np.ndarray, transposed: bool) -> np.ndarray:
        """Solve for one right-hand side."""
        return b / self._slopes


class Dense:
    """System with a factorised Jacobian."""

    def __init__(self, equation: Any, residual: Callable, x: np.ndarray) -> None:
        jacobian = equation.jacobian()
        if x.size == 0:
            return
        self._rows, self._columns, _, _, _, zero = lapack.dgeequ(jacobian)
        jacobian *= self._rows[:, None] * self._columns
        norm = lapack.dlange("1", jacobian)
        if zero or not math.isfinite(norm):
            raise not_isolated(equation, "singular or not finite")
        self._factors = lapack.dgetrf(jacobian, overwrite_a=True)[:2]
        condition, _ = lapack.dgecon(self._factors[0], norm)
        if condition < EPSILON:
            raise not_isolated(
                equation, f"singular, with a reciprocal condition number of {condition:.1e}")

    def solve(self, b: np.ndarray, transposed: bool) -> np.ndarray:
        """Solve for one right-hand side."""
        if b.size == 0:
            return b
        before, after = (self._rows, self._columns)[::-1 if transposed else 1]
        return after * lapack.dgetrs(*self._factors, before * b, int(transposed))[0]


class MatrixFree:
    """System that is solved by iterations, which multiply the Jacobian with vectors."""

    def __init__(self, equation: Any, residual: Callable, x: np.ndarray) -> None:
        self._equation, self._residual, self._x = equation, residual, x

    def solve(self, b: np.ndarray, transposed: bool) -> np.ndarray:
        """Solve for one right-hand side."""
        operator = scipy.sparse.linalg.LinearOperator(
            (b.size, b.size), partial(
                self._equation.product, self._residual, self._x, transposed=transposed),
            dtype=float)
        if self._equation.symmetric:
            found, info = scipy.sparse.linalg.cg(operator, b, rtol=TOLERANCE)
        else:
            found, info = scipy.sparse.linalg.gmres(
                operator, b, rtol=TOLERANCE, restart=100, maxiter=50)
        if info:
            raise NotDifferentiableError(
                f"the linear equation for the derivative of {self._equation.name}, of {b.size} "
                f"unknowns, was not solved in {info} iterations")
        return found


class Refined:
    """System that is solved by the factors of a similar one, and products with the Jacobian."""

    def __init__(
        self, equation: Any, similar: Any, residual: Callable, x: np.ndarray
    ) -> None:
        self._equation, self._similar, self._residual, self._x = equation, similar, residual, x

    def solve(self, b: np.ndarray, transposed: bool) -> np.ndarray:
        """Solve for one right-hand side."""
        found, error = np.zeros_like(b), b
        while True:
            found = found + self._similar.solve(error, transposed)
            size, error = np.max(np.abs(error), initial=0), b - self._equation.product(
                self._residual, self._x, found, transposed)
            if not np.max(np.abs(error), initial=0) < size / 2:  # to rounding errors
                return found


def not_isolated(equation: Any, how: str) -> NotDifferentiableError:
    """Return an error for a singular Jacobian."""
    return NotDifferentiableError(
        f"the solution of {equation.name} has no derivative in the parameters: the Jacobian of the "
        f"equations (the second derivative of a function to be minimised) is {how} there")
