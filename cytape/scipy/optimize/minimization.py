"""Minimisation of functions, with exact gradients and Hessians."""

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.optimize as scipys

import cytape.numpy as cnp
from cytape.autodiff.custom.bound_rule import noting, restored
from cytape.autodiff.forward_functional import hessian_vector_product
from cytape.autodiff.functional import grad, value_and_grad
from cytape.autodiff.jacobian_functional import hessian
from cytape.autodiff.transform_arguments import name_of
from cytape.graph.tracing.kept_traces import Identity, identity_of
from cytape.scipy.optimize.constraints import Constraints, conditions, is_near, multipliers
from cytape.scipy.optimize.exact_jacobians import jacobian_of
from cytape.scipy.optimize.implicit import (
    Equation,
    called_in_graph,
    held,
    projected,
    require_no_captures,
    run,
    solution,
)
from cytape.scipy.optimize.quasi_newton import OPTIONS, bfgs, is_available
from cytape.scipy.optimize.stored_results import LastPoint, call_near, forgetting
from cytape.scipy.optimize.unknowns import Unknowns, separated, tuple_of
from cytape.tensor import nest
from cytape.tensor.tensor import Tensor
from cytape.tensor.values.spec import Spec

WITHOUT_GRADIENTS = {"nelder-mead", "powell", "cobyla", "cobyqa"}
WITH_HESSIANS = {"dogleg", "trust-exact"}
WITH_PRODUCTS = {"newton-cg", "trust-ncg", "trust-krylov", "trust-constr"}
WITH_BOUNDS = {
    None, "nelder-mead", "powell", "l-bfgs-b", "tnc", "slsqp", "trust-constr", "cobyla", "cobyqa"}


class Objective:
    """Function of a vector with its gradient, computed by one call."""

    def __init__(self, fun: Callable) -> None:
        self._both = value_and_grad(fun)
        self.n_calls = 0
        self._known: tuple = (None, None)

    def value(self, x: np.ndarray) -> Any:
        """Return the value; the gradient is kept."""
        value, gradient = self._both(x)
        self.n_calls += 1
        self._known = x.tobytes(), np.asarray(gradient)
        return np.reshape(value, ())[()]

    def gradient(self, x: np.ndarray) -> np.ndarray:
        """Return the gradient, that of the last call if it was at the same point."""
        if self._known[0] != x.tobytes():
            self.value(x)
        return self._known[1]


def minimize(
    fun: Callable, x0: Any, args: Any = (), method: Any = None, jac: Any = None, hess: Any = None,
    hessp: Any = None, bounds: Any = None, constraints: Any = (), tol: Any = None,
    callback: Any = None, options: Any = None,
) -> scipys.OptimizeResult:
    """Minimise a function, as `scipy.optimize.minimize`.

    The gradient, and the Hessian or its product with a vector if the method takes one, are exact,
    unless `jac`, `hess` or `hessp` is given (``jac=False``: SciPy's differences). `fun` computes
    with NumPy's functions. The method "BFGS" takes SciPy's steps, by an update that is cheaper for
    many unknowns.

    `x0` may be a structure (list, tuple, dict, ...) of arrays: `fun`, the callback and the result
    have it, too, so have the functions of constraints, and `bounds` have a pair
    ``(lower, upper)`` in place of each of its arrays.

    If `args`, `bounds` or ``args`` of constraints contain tensors, `x` and `fun` of the result are
    tensors, differentiable in them by the implicit function theorem. If the method fails
    (``success`` is False), their derivatives raise an error.

    Examples
    --------
    >>> import cytape
    >>> import cytape.numpy as np
    >>> from cytape.scipy.optimize import minimize
    >>> def f(x, a):
    ...     return (x[0] - a) ** 2 + (x[1] - x[0] ** 2) ** 2
    >>> minimize(f, [0.0, 0.0], (3.0,)).x.round(4)
    array([3., 9.])
    >>> cytape.grad(lambda a: minimize(f, [0.0, 0.0], (a,)).x[1])(3.0).round(4)
    np.float64(6.0)
    """
    args, unknowns = tuple_of(args), Unknowns(x0)
    name = method.lower() if isinstance(method, str) else method
    limits = None if bounds is None else unknowns.limits(bounds)
    is_constrained = not isinstance(constraints, (list, tuple)) or len(constraints) > 0
    conditioned = Constraints(constraints, unknowns)
    given = separated(args, limits, conditioned.args)
    plain = given.without_tensors(copies=True)
    packed = given.without_tensors().packed
    rules = held("minimize", [fun, jac, hess, hessp], given)
    conditioned.functions = held("minimize", conditioned.functions, given)
    if limits is not None and (unknowns.is_structure or separated(limits).tensors):
        bounds = None  # those of each solution

    def objective(x, *parameters):
        return rules[0](unknowns.unpack(x), *plain.packed(parameters)[0])

    def solve(x0, *parameters):
        args, limits, of_constraints = packed(parameters)
        own = bounds if bounds is not None or limits is None else scipys.Bounds(*limits)
        fun, jac, hess, hessp = map(restored, rules)
        last = LastPoint()
        functions, exact = _functions(unknowns, x0, fun, args, name, jac, hess, hessp, last)
        if exact is not None and own is None and not is_constrained and (
                callback is None and is_available() and _is_plain_bfgs(name, x0, options)):
            return bfgs(exact, np.asarray(x0, float), **(
                {} if tol is None else {"gtol": tol}) | (options or {}))
        return scipys.minimize(
            x0=x0, method=method, bounds=own, tol=tol, options=options,
            callback=_called_back(callback, unknowns), constraints=conditioned.for_scipy(
                of_constraints, jac is None, last) if is_constrained else constraints, **functions)

    def bounds_of(parameters):
        return plain.packed(parameters)[1] if name in WITH_BOUNDS else None

    def residual(x, *parameters):
        return projected(grad(objective)(x, *parameters), x, bounds_of(parameters))

    if is_constrained and (given.tensors or isinstance(unknowns.vector, Tensor)):
        return _constrained(
            conditioned, given, objective, solve, unknowns, bounds_of,
            [*rules, *conditioned.functions])
    return minimum(
        "minimize", objective, residual, solve, unknowns, given.tensors,
        symmetric=limits is None or name not in WITH_BOUNDS,
        reads=identity_of(
            "minimize", fun, plain.args, plain.is_tensor, unknowns.outline, name in WITH_BOUNDS),
        rules=rules)


def minimize_scalar(
    fun: Callable, bracket: Any = None, bounds: Any = None, args: Any = (), method: Any = None,
    tol: Any = None, options: Any = None,
) -> scipys.OptimizeResult:
    """Minimise a function of one number, as `scipy.optimize.minimize_scalar`.

    If `args` or `bounds` contain tensors, `x` and `fun` of the result are tensors, differentiable
    in them.

    Examples
    --------
    >>> import cytape
    >>> from cytape.scipy.optimize import minimize_scalar
    >>> cytape.grad(lambda a: minimize_scalar(
    ...     lambda x, a: (x - a) ** 4 + x**2, args=(a,)).x)(2.0).round(6)
    np.float64(0.80712)
    """
    given = separated(tuple_of(args), bounds, bracket)
    plain, rules = given.without_tensors(copies=True), held("minimize_scalar", [fun], given)
    packed = given.without_tensors().packed

    def objective(x, *parameters):
        return rules[0](x, *plain.packed(parameters)[0])

    def solve(_, *parameters):
        (args, bounds, bracket), (fun,) = packed(parameters), map(restored, rules)
        return scipys.minimize_scalar(fun, bracket, bounds, args, method, tol, options)

    def residual(x, *parameters):
        return projected(
            grad(objective)(x, *parameters), x, plain.packed(parameters)[1])

    if not given.tensors:
        require_no_captures("minimize_scalar", objective, 0.5)
        return run("minimize_scalar", solve, None)
    return minimum("minimize_scalar", objective, residual, solve, Unknowns(np.zeros(())),
                   given.tensors, is_number=True, rules=rules)


def _constrained(constraints, given, objective, solve, unknowns, bounds_of, rules):
    """Return the result of a minimum with constraints, of which tensors have derivatives."""
    n, plain = np.size(unknowns.vector), given.without_tensors(copies=True)
    packed = given.without_tensors().packed
    with np.errstate(all="ignore"):
        limits = noting(rules, constraints.limits, np.ones(n), [
            nest.map_structure(_plain, args) for args in constraints.args])

    def with_multipliers(start, *parameters):
        result = solve(start[:n], *parameters)
        args = packed(parameters)[2]
        call_near(lambda x: objective(x, *parameters), result.x)
        slope = np.asarray(grad(objective)(result.x, *parameters))
        call_near(lambda x: constraints.values(x, args), result.x)
        bounds = bounds_of(parameters)
        is_free = np.ones(n, bool)
        for bound in () if bounds is None else bounds:
            is_free &= ~is_near(result.x, bound)
        weights = multipliers(
            slope, jacobian_of(lambda x: constraints.values(x, args), result.x),
            np.asarray(constraints.values(result.x, args)), limits, is_free)
        return scipys.OptimizeResult(
            {**result, "x": np.concatenate([result.x, weights])})

    def residual(both, *parameters):
        return conditions(
            lambda x: objective(x, *parameters), constraints, both[:n], both[n:],
            plain.packed(parameters)[2], limits, bounds_of(parameters))

    start = cnp.concatenate([cnp.ravel(unknowns.vector), np.zeros(limits[0].size)])
    return minimum(
        "minimize", lambda both, *parameters: objective(both[:n], *parameters), residual,
        with_multipliers, unknowns, given.tensors, start=start,
        unpack=lambda both: unknowns.unpack(both[:n]), rules=rules)


def _plain(leaf):
    """Return a stand-in for a tensor, to find out shapes."""
    return np.ones(leaf.shape, leaf.dtype) if isinstance(leaf, Tensor) else leaf


def minimum(
    name: str, objective: Callable, residual: Callable, solve: Callable, unknowns: Unknowns,
    tensors: list, symmetric: bool = False, is_number: bool = False, start: Any = None,
    unpack: Any = None, reads: Identity | None = None, rules: Sequence = (),
) -> scipys.OptimizeResult:
    """Return a result of SciPy, in which `x` and `fun` are tensors if there are any.

    `reads` and `rules` are those of an `Equation`.
    """
    if not tensors and not isinstance(unknowns.vector, Tensor):
        require_no_captures(name, objective, unknowns.vector)
        result = run(name, solve, unknowns.vector)
        result.x = unknowns.unpack(result.x)
        return result
    equation = Equation(name, residual, solve, symmetric, reads=reads, rules=rules)
    if start is None:
        start = unknowns.vector if is_number else cnp.atleast_1d(unknowns.vector)
    x, is_solved = solution(equation, start, tensors)
    result = equation.result if x.graph is None else scipys.OptimizeResult(success=is_solved)
    result.x = (unpack or unknowns.unpack)(x)
    result.fun = called_in_graph(name, objective, (x, *tensors), Spec.of((), float))
    return result


def _functions(unknowns, x0, fun, args, method, jac, hess, hessp, last):
    """Return the functions of a vector that SciPy calls, and the exact objective if it is used."""
    reads = identity_of(fun)

    def adapted(function, pack):
        if not callable(function):
            return function
        return lambda x, *direction: pack(function(
            *map(unknowns.unpack, (x, *direction)), *args))

    def packed_pair(result):
        return result[0], unknowns.pack(result[1])

    functions = {"fun": adapted(fun, packed_pair if jac is True else lambda value: value),
                 "jac": adapted(jac, unknowns.pack), "hess": adapted(hess, lambda matrix: matrix),
                 "hessp": adapted(hessp, unknowns.pack)}
    exact = None
    if method in WITHOUT_GRADIENTS:
        return functions, exact

    def objective(x):
        value = fun(unknowns.unpack(x), *args)
        return value[0] if jac is True else value

    objective.__name__ = name_of(fun)
    if jac is None:
        exact = Objective(objective)
        value = exact.value
        if reads is None:
            call_near(objective, np.atleast_1d(x0))
        # The constraints and the Hessian may store results that the objective reads.
        value = last.forgetting(value, objective, reads)
        functions.update(fun=value, jac=exact.gradient)
    if hess is None and hessp is None:
        if method in WITH_HESSIANS:
            functions["hess"] = last.noted(forgetting(hessian(objective), objective, reads))
        elif method in WITH_PRODUCTS:
            functions["hessp"] = last.noted(
                forgetting(hessian_vector_product(objective), objective, reads))
    return functions, exact


def _is_plain_bfgs(method, x0, options):
    """Return whether the method of `quasi_newton` serves a call."""
    return method in (None, "bfgs") and set(options or ()) <= OPTIONS and np.ndim(x0) == 1 and (
        np.size(x0) > 0 and np.asarray(x0).dtype in (np.float64, np.int64))


def _called_back(callback, unknowns):
    """Return a callback that gets the unknowns in their structure."""
    if callback is None or not unknowns.is_structure:
        return callback
    if "intermediate_result" in inspect.signature(callback).parameters:
        return lambda intermediate_result: callback(intermediate_result=scipys.OptimizeResult(
            {**intermediate_result, "x": unknowns.unpack(intermediate_result.x)}))
    return lambda x, *state: callback(unknowns.unpack(x), *state)
