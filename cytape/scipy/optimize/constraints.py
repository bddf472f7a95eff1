"""Constraints of `minimize`: exact Jacobians, and the conditions for a constrained minimum."""

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.optimize as scipys

import cytape.numpy as cnp
from cytape.autodiff.functional import grad
from cytape.scipy.optimize.implicit import jacobian_of, projected
from cytape.scipy.optimize.unknowns import Unknowns, tuple_of

# Largest distance of an active constraint from its limit, relative to values above 1. Those that
# are near but not active get a multiplier of 0.
NEAR = 1e-2


class Constraints:
    """Constraints in one of SciPy's forms.

    Parameters
    ----------
    constraints : dict, Constraint or sequence of these
    unknowns : Unknowns
        Their functions get the unknowns in their structure.

    Attributes
    ----------
    args : list of tuple
        Additional arguments of each constraint, which may contain tensors.
    """

    def __init__(self, constraints: Any, unknowns: Unknowns) -> None:
        is_list = isinstance(constraints, (list, tuple))
        self._items = list(constraints) if is_list else [constraints]
        self._unknowns = unknowns
        self.args = [tuple_of(item.get("args", ())) if isinstance(item, dict) else ()
                     for item in self._items]

    def for_scipy(self, all_args: list, with_jacobians: bool) -> list:
        """Return constraints of a vector, with exact Jacobians unless Jacobians are given."""
        return [self._adapted(item, args, with_jacobians)
                for item, args in zip(self._items, all_args, strict=True)]

    def _adapted(self, item: Any, args: tuple, with_jacobians: bool) -> Any:
        if isinstance(item, dict):
            if not callable(item.get("fun")):
                return item  # SciPy raises
            function, slope = self._function(item, args), item.get("jac")
            if callable(slope):
                slope = self._of_vector(item["jac"], args)
            elif slope is None and with_jacobians:
                slope = lambda x: jacobian_of(function, x)  # noqa: E731
            rest = {key: value for key, value in item.items() if key not in ("jac", "args")}
            return rest | {"fun": self._of_vector(item["fun"], args)} | (
                {} if slope is None else {"jac": slope})
        if not isinstance(item, scipys.NonlinearConstraint):
            return item
        function, slope = self._function(item, args), item.jac
        if slope == "2-point" and with_jacobians:
            slope = lambda x: jacobian_of(function, x)  # noqa: E731
        elif callable(slope):
            slope = self._of_vector(item.jac, args)
        return scipys.NonlinearConstraint(
            self._of_vector(item.fun, args), item.lb, item.ub, slope, item.hess,
            item.keep_feasible)

    def _of_vector(self, function: Callable, args: tuple) -> Callable:
        return lambda x: function(self._unknowns.unpack(x), *args)

    def _function(self, item: Any, args: tuple) -> Callable:
        if isinstance(item, scipys.LinearConstraint):
            matrix = item.A.toarray() if hasattr(item.A, "toarray") else np.atleast_2d(item.A)
            return lambda x: cnp.matmul(matrix, x)
        function = item["fun"] if isinstance(item, dict) else item.fun
        return lambda x: cnp.atleast_1d(cnp.asarray(function(self._unknowns.unpack(x), *args)))

    def values(self, x: Any, all_args: list) -> Any:
        """Return the values of all constraints."""
        return cnp.concatenate([
            cnp.ravel(self._function(item, args)(x))
            for item, args in zip(self._items, all_args, strict=True)])

    def limits(self, x: np.ndarray, all_args: list) -> tuple:
        """Return the lower and upper limits of all values."""
        sides: tuple = [], []
        for item, args in zip(self._items, all_args, strict=True):
            size = np.size(self._function(item, args)(x))
            if isinstance(item, dict):
                limits = (0.0, 0.0 if item["type"].lower() == "eq" else np.inf)
            else:
                limits = item.lb, item.ub
            for side, limit in zip(sides, limits, strict=True):
                side.append(np.broadcast_to(limit, size))
        return tuple(map(np.concatenate, sides))


def is_near(x: np.ndarray, limit: Any) -> np.ndarray:
    """Return which numbers are at a limit, to the accuracy of a solver."""
    return np.abs(x - limit) <= NEAR * np.maximum(1, np.abs(x))


def multipliers(
    gradient: np.ndarray, jacobian: np.ndarray, values: np.ndarray, limits: tuple,
    is_free: np.ndarray,
) -> np.ndarray:
    """Return the multipliers of the constraints at a minimum, 0 for those that are not active."""
    at_lower, at_upper = (is_near(values, limit) for limit in limits)
    active, found = at_lower | at_upper, np.zeros(values.size)
    if np.any(active) and np.any(is_free):
        found[active] = scipys.lsq_linear(
            jacobian[active][:, is_free].T, gradient[is_free],
            (np.where(at_upper, -np.inf, 0.0)[active], np.where(at_lower, np.inf, 0.0)[active])).x
    return found


def conditions(
    objective: Callable, constraints: Constraints, x: Any, weights: Any, all_args: list,
    limits: tuple, bounds: Any,
) -> Any:
    """Return the residual of the Karush-Kuhn-Tucker conditions, for unknowns and multipliers."""
    def lagrangian(x):
        return objective(x) - cnp.sum(weights * constraints.values(x, all_args))

    values = constraints.values(x, all_args)
    return cnp.concatenate([
        projected(grad(lagrangian)(x), x, bounds), projected(weights, values, limits)])
