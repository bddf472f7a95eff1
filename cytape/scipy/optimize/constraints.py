"""Constraints of `minimize`: exact Jacobians, and the conditions for a constrained minimum."""

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.optimize as scipys

import cytape.numpy as cnp
from cytape.autodiff.custom.bound_rule import restored
from cytape.autodiff.functional import grad
from cytape.graph.tracing.kept_traces import identity_of
from cytape.scipy.optimize.exact_jacobians import jacobian_of
from cytape.scipy.optimize.implicit import projected
from cytape.scipy.optimize.stored_results import LastPoint, forgetting
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
    functions : list
        Function and Jacobian of the first constraint, of the second one and so on; None if missing.
    """

    def __init__(self, constraints: Any, unknowns: Unknowns) -> None:
        is_list = isinstance(constraints, (list, tuple))
        self._items = list(constraints) if is_list else [constraints]
        self._unknowns = unknowns
        self.args = [tuple_of(item.get("args", ())) if isinstance(item, dict) else ()
                     for item in self._items]
        self.functions: list = []
        for item in self._items:
            self.functions += [
                item.get(name) if isinstance(item, dict) else getattr(item, name, None)
                for name in ("fun", "jac")]

    def for_scipy(self, all_args: list, with_jacobians: bool, last: LastPoint) -> list:
        """Return constraints of a vector, with exact Jacobians unless Jacobians are given."""
        return [self._adapted(i, args, with_jacobians, last) for i, args in enumerate(all_args)]

    def _adapted(self, i: int, args: tuple, with_jacobians: bool, last: LastPoint) -> Any:
        item = self._items[i]
        fun, slope = map(restored, self.functions[2 * i:2 * i + 2])
        if not callable(fun):
            return item  # linear, or SciPy raises
        function = self._function(i, args)
        if callable(slope):
            slope = self._of_vector(slope, args)
        elif with_jacobians and slope == (None if isinstance(item, dict) else "2-point"):
            reads = identity_of(fun, args)
            slope = forgetting(lambda x: jacobian_of(function, x, reads), function, reads)
        value, slope = last.noted(self._of_vector(fun, args)), last.noted(slope)
        if isinstance(item, dict):
            rest = {key: value for key, value in item.items() if key not in ("jac", "args")}
            return rest | {"fun": value} | (
                {} if slope is None else {"jac": slope})
        return scipys.NonlinearConstraint(
            value, item.lb, item.ub, slope, item.hess, item.keep_feasible)

    def _of_vector(self, function: Callable, args: tuple) -> Callable:
        return lambda x: function(self._unknowns.unpack(x), *args)

    def _function(self, i: int, args: tuple) -> Callable:
        item, function = self._items[i], self.functions[2 * i]
        if isinstance(item, scipys.LinearConstraint):
            matrix = item.A.toarray() if hasattr(item.A, "toarray") else np.atleast_2d(item.A)
            return lambda x: cnp.matmul(matrix, x)
        return lambda x: cnp.atleast_1d(cnp.asarray(function(self._unknowns.unpack(x), *args)))

    def values(self, x: Any, all_args: list) -> Any:
        """Return the values of all constraints."""
        return cnp.concatenate([
            cnp.ravel(self._function(i, args)(x)) for i, args in enumerate(all_args)])

    def limits(self, x: np.ndarray, all_args: list) -> tuple:
        """Return the lower and upper limits of all values."""
        sides: tuple = [], []
        for i, (item, args) in enumerate(zip(self._items, all_args, strict=True)):
            size = np.size(self._function(i, args)(x))
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

    slope = grad(lagrangian)(x)  # first: the functions may store results
    return cnp.concatenate([
        projected(slope, x, bounds), projected(weights, constraints.values(x, all_args), limits)])
