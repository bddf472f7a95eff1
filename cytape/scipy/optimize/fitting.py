"""Least squares and curve fitting, with exact Jacobians and implicit derivatives."""

import inspect
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np
import scipy.optimize as scipys
import scipy.sparse

import cytape.numpy as cnp
from cytape.autodiff.custom.bound_rule import restored
from cytape.autodiff.forward_functional import jvp
from cytape.autodiff.functional import grad
from cytape.autodiff.jacobian_functional import elementwise_grad, jacfwd
from cytape.graph.tracing.kept_traces import identity_of
from cytape.ops.engine.op_kinds import nondifferentiable
from cytape.scipy.linalg import solve_triangular
from cytape.scipy.optimize.exact_jacobians import kept_jacobian
from cytape.scipy.optimize.implicit import (
    Equation,
    held,
    projected,
    require_no_captures,
    run,
    solution,
)
from cytape.scipy.optimize.implicit_systems import EPSILON
from cytape.scipy.optimize.minimization import minimum
from cytape.scipy.optimize.stored_results import forgetting
from cytape.scipy.optimize.unknowns import Unknowns, separated, tuple_of
from cytape.tensor.tensor import Tensor
from cytape.tensor.values.spec import symbolic_spec

# Functions of squared residuals that SciPy knows.
_LOSSES: dict[str, Callable] = {
    "linear": lambda z: z,
    "soft_l1": lambda z: 2 * (cnp.sqrt(1 + z) - 1),
    "huber": lambda z: cnp.where(z <= 1, z, 2 * cnp.sqrt(cnp.where(z <= 1, 1, z)) - 1),
    "cauchy": cnp.log1p,
    "arctan": cnp.arctan,
}


def least_squares(
    fun: Callable, x0: Any, jac: Any = None, bounds: Any = (-np.inf, np.inf), method: str = "trf",
    ftol: float | None = 1e-8, xtol: float | None = 1e-8, gtol: float | None = 1e-8,
    x_scale: Any = None, loss: Any = "linear", f_scale: float = 1.0, diff_step: Any = None,
    tr_solver: Any = None, tr_options: Any = None, jac_sparsity: Any = None,
    max_nfev: int | None = None, verbose: int = 0, args: Any = (), kwargs: Any = None,
    **options: Any,
) -> scipys.OptimizeResult:
    """Minimise a sum of squared residuals, as `scipy.optimize.least_squares`.

    The Jacobian is exact unless `jac` is given. With `jac_sparsity`, the places of its nonzero
    elements, it is a sparse matrix, computed along one direction for each group of columns that
    share no row.

    If `args`, `kwargs` or `bounds` contain tensors, `x`, `fun` and `cost` of the result are
    tensors, differentiable in them by the implicit function theorem, with the whole second
    derivative of the cost. If the method fails (``success`` is False), their derivatives raise an
    error.

    Examples
    --------
    >>> import cytape
    >>> import cytape.numpy as np
    >>> from cytape.scipy.optimize import least_squares
    >>> def residuals(x, a):
    ...     return np.array([x[0] - a, 10 * (x[1] - x[0] ** 2)])
    >>> cytape.jacobian(lambda a: least_squares(residuals, [1.0, 1.0], args=(a,)).x)(3.0).round(6)
    array([1., 6.])
    """
    unknowns = Unknowns(x0)
    if hasattr(bounds, "lb"):
        bounds = bounds.lb, bounds.ub
    if unknowns.is_structure:
        bounds = tuple([
            bound if np.ndim(bound) == 0 and not isinstance(bound, (dict, list, tuple))
            else unknowns.pack(bound) for bound in bounds])
    given = separated(tuple_of(args), kwargs or {}, bounds)
    plain = given.without_tensors(copies=True)
    packed = given.without_tensors().packed
    rules = held("least_squares", [fun, jac, loss], given)
    reads = identity_of(
        "least_squares", fun, plain.args, plain.is_tensor, unknowns.outline, loss, f_scale)

    def residuals(x, *parameters):
        args, kwargs, _ = plain.packed(parameters)
        return cnp.atleast_1d(cnp.asarray(rules[0](unknowns.unpack(x), *args, **kwargs)))

    def solve(x0, *parameters):
        (args, kwargs, bounds), (fun, jac, loss) = packed(parameters), map(restored, rules)
        slope = jac
        if callable(jac):
            slope = lambda x: jac(unknowns.unpack(x), *args, **kwargs)  # noqa: E731
        elif jac is None:
            function = lambda x: residuals(x, *parameters)  # noqa: E731
            slope = kept_jacobian(residuals, reads, parameters) if jac_sparsity is None else (
                forgetting(SparseJacobian(function, jac_sparsity), function, reads))
        sparsity = None if jac is None and method != "lm" else jac_sparsity
        return scipys.least_squares(
            lambda x: fun(unknowns.unpack(x), *args, **kwargs), x0, slope, bounds, method, ftol,
            xtol, gtol, 1.0 if x_scale is None else x_scale, loss, f_scale, diff_step, tr_solver,
            tr_options or {}, sparsity, max_nfev, verbose, **options)

    def cost(x, *parameters):
        return _cost(residuals(x, *parameters), rules[2], f_scale)

    def stationarity(x, *parameters):
        return projected(grad(cost)(x, *parameters), x, plain.packed(parameters)[2])

    is_free = not separated(bounds).tensors and all([
        np.all(np.isinf(bound)) for bound in bounds])
    result = minimum("least_squares", cost, stationarity, solve, unknowns, given.tensors, is_free,
                     reads=reads, rules=rules)
    if isinstance(result.get("fun"), Tensor):
        result.cost = result.fun
        result.fun = residuals(unknowns.pack(result.x), *given.tensors)
    return result


def _cost(residuals: Any, loss: Any, f_scale: Any) -> Any:
    """Return half the sum of the losses of squared residuals."""
    losses = loss if callable(loss) else _LOSSES[loss]
    values = losses((residuals / f_scale) ** 2)
    return 0.5 * f_scale**2 * cnp.sum(values[0] if callable(loss) else values)


class SparseJacobian:
    """Jacobian of known sparsity, computed along the sum of the unit vectors of each group."""

    def __init__(self, function: Callable, sparsity: Any) -> None:
        self._function = function
        pattern = scipy.sparse.csr_array(sparsity)
        self._shape = pattern.shape
        self._rows, self._columns = pattern.nonzero()
        self._groups = scipys._numdiff.group_columns(pattern)

    def __call__(self, x: np.ndarray) -> Any:
        """Return the Jacobian at a point."""
        directions = np.zeros((np.max(self._groups, initial=-1) + 1, x.size))
        directions[self._groups, np.arange(x.size)] = 1
        products = np.asarray(jvp(self._function, (x,), (directions,), use_batch=True)[1])
        return scipy.sparse.csr_matrix(
            (products[self._groups[self._columns], self._rows], (self._rows, self._columns)),
            self._shape)


def curve_fit(
    f: Callable, xdata: Any, ydata: Any, p0: Any = None, sigma: Any = None,
    absolute_sigma: bool = False, check_finite: bool | None = None,
    bounds: Any = (-np.inf, np.inf), method: str | None = None, jac: Any = None, *,
    full_output: bool = False, nan_policy: str | None = None, **kwargs: Any,
) -> Any:
    """Fit a function to data by least squares, as `scipy.optimize.curve_fit`.

    The Jacobian is exact unless `jac` is given. If `xdata`, `ydata`, `sigma` or `bounds` contain
    tensors, the parameters and their covariance are tensors, differentiable in them.

    Examples
    --------
    >>> import cytape
    >>> import cytape.numpy as np
    >>> from cytape.scipy.optimize import curve_fit
    >>> def line(x, slope, start):
    ...     return slope * x + start
    >>> x, y = np.arange(4.0), np.array([1.0, 3.1, 4.9, 7.0])
    >>> cytape.jacobian(lambda y: curve_fit(line, x, y)[0][0])(y).round(6)
    array([-0.3, -0.1,  0.1,  0.3])
    """
    if hasattr(bounds, "lb"):
        bounds = bounds.lb, bounds.ub
    given = separated(xdata, ydata, sigma, bounds)
    plain, rules = given.without_tensors(copies=True), held("curve_fit", [f, jac], given)
    packed = given.without_tensors().packed

    def model(p, x):
        return cnp.asarray(rules[0](x, *[p[i] for i in range(p.shape[0])]))

    reads = identity_of("curve_fit", f)

    def slope(x, *parameters):
        return kept_jacobian(model, reads if isinstance(x, np.ndarray) else None, [x])(
            np.asarray(parameters, float))

    def solve(_, *tensors):
        (xdata, ydata, sigma, bounds), (f, jac) = packed(tensors), map(restored, rules)
        if sigma is not None and np.ndim(sigma) == 0:  # which SciPy does not take beside `jac`
            sigma = np.full(np.shape(ydata), sigma)
        found = scipys.curve_fit(
            f, xdata, ydata, p0, sigma, absolute_sigma, check_finite, bounds, method,
            slope if jac is None else jac, full_output=full_output, nan_policy=nan_policy, **kwargs)
        return scipys.OptimizeResult(x=found[0], success=True, found=found)

    if not given.tensors:
        require_no_captures("curve_fit", lambda p: f(np.asarray(xdata), *p), _start(f, p0))
        return run("curve_fit", solve, None).found
    if nan_policy == "omit":
        raise TypeError(
            "curve_fit of tensors does not take nan_policy='omit': select the data before")

    def residuals(p, *tensors):
        x, y, sigma, _ = plain.packed(tensors)
        if isinstance(x, (list, tuple, np.ndarray)):
            x = cnp.asarray(x, float)
        error = model(p, x) - cnp.asarray(y, float)
        if sigma is None:
            return error
        sigma = cnp.asarray(sigma, float)
        if sigma.ndim < 2 or sigma.size == 1:
            return error / cnp.reshape(sigma, ()) if sigma.size == 1 else error / sigma
        return solve_triangular(cnp.linalg.cholesky(sigma), error, lower=True)

    def stationarity(p, *tensors):
        gradient = grad(lambda p: _cost(residuals(p, *tensors), *robust))(p)
        return projected(gradient, p, plain.packed(tensors)[3])

    n, robust = _start(f, p0).size, (kwargs.get("loss", "linear"), kwargs.get("f_scale", 1.0))
    equation = Equation("curve_fit", stationarity, solve, reads=identity_of(
        "curve_fit", f, plain.args, plain.is_tensor, robust), rules=rules)
    p, _ = solution(equation, np.zeros(n), given.tensors)
    equation.forget(p, *given.tensors)
    covariance = partial(
        _covariance, lambda p: residuals(p, *given.tensors), p, absolute_sigma, *robust)
    if p.graph is not None:
        return p, covariance()
    _, pcov, *rest = equation.result.found
    with suppress(np.linalg.LinAlgError):  # SciPy takes a pseudoinverse of a singular matrix
        pcov = covariance() if np.all(np.isfinite(pcov)) else pcov
    return (p, pcov, *rest)


def _start(f: Callable, p0: Any) -> np.ndarray:
    if p0 is not None:
        return np.ravel(p0)
    return np.ones(len(inspect.signature(f).parameters) - 1)


def _covariance(residuals: Callable, p: Any, is_absolute: bool, loss: Any, f_scale: Any) -> Any:
    jacobian, error = jacfwd(residuals)(p), residuals(p)
    if loss != "linear":  # SciPy's jacobian is scaled so that its square is the cost's Hessian
        squares = (error / f_scale) ** 2
        slopes, curvatures = loss(squares)[1:] if callable(loss) else (
            f(squares) for f in _derivatives(_LOSSES[loss]))
        scale = cnp.maximum(slopes + 2 * squares * curvatures, EPSILON)
        jacobian = cnp.sqrt(scale)[:, None] * jacobian
    covariance = cnp.linalg.inv(jacobian.T @ jacobian)
    if is_absolute:
        return covariance
    degrees = error.size - p.size
    if degrees <= 0:
        return 0 * covariance + np.inf
    return covariance * (2 * _cost(error, loss, f_scale) / degrees)


def _derivatives(function: Callable) -> tuple:
    slope = elementwise_grad(function)
    return slope, elementwise_grad(slope)


def nnls(A: Any, b: Any, **options: Any) -> tuple:
    """Solve a least-squares problem with nonnegative unknowns, as `scipy.optimize.nnls`.

    If `A` or `b` is a tensor, the results are tensors, differentiable in both.

    Examples
    --------
    >>> import cytape
    >>> import numpy as np
    >>> from cytape.scipy.optimize import nnls
    >>> matrix = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    >>> cytape.jacobian(lambda b: nnls(matrix, b)[0])(np.array([2.0, 1.0, -1.0]))
    array([[0.5, 0.5, 0. ],
           [0. , 0. , 0. ]])
    """
    def solve(A, b, bounds):
        x, residual = scipys.nnls(A, b, **options)
        return scipys.OptimizeResult(x=x, success=True, residual=residual)

    result = _linear("nnls", A, b, (0.0, np.inf), solve)
    if isinstance(result.x, Tensor):
        return result.x, cnp.linalg.norm(result.fun)
    return result.x, result.residual


def lsq_linear(
    A: Any, b: Any, bounds: Any = (-np.inf, np.inf), *args: Any, **options: Any
) -> scipys.OptimizeResult:
    """Solve a linear least-squares problem with bounds, as `scipy.optimize.lsq_linear`.

    If `A`, `b` or `bounds` are tensors, `x`, `fun` and `cost` of the result are tensors,
    differentiable in them.

    Examples
    --------
    >>> import cytape
    >>> import numpy as np
    >>> from cytape.scipy.optimize import lsq_linear
    >>> x = lsq_linear(np.eye(2), cytape.constant([2.0, 0.5]), bounds=(0, 1)).x
    >>> x.numpy().round(6)
    array([1. , 0.5])
    """
    if hasattr(bounds, "lb"):
        bounds = bounds.lb, bounds.ub
    return _linear("lsq_linear", A, b, bounds, lambda A, b, bounds: scipys.lsq_linear(
        A, b, bounds, *args, **options))


def linear_sum_assignment(cost_matrix: Any, maximize: bool = False) -> tuple:
    """Assign rows to columns, as `scipy.optimize.linear_sum_assignment`; integers, no derivative.

    Examples
    --------
    >>> import cytape
    >>> from cytape.scipy.optimize import linear_sum_assignment
    >>> rows, columns = linear_sum_assignment(cytape.constant([[1.0, 5.0], [2.0, 9.0]]))
    >>> columns
    Tensor([1, 0], dtype=int64)
    """
    return _assignment_op(cost_matrix, maximize=maximize)


_assignment_op = nondifferentiable(
    "ScipyOptimizeLinearSumAssignment", scipys.linear_sum_assignment,
    shape_rule=lambda cost, **_: (symbolic_spec((min(cost.shape),), np.int64),) * 2)


def _linear(name: str, A: Any, b: Any, bounds: Any, solve: Callable) -> scipys.OptimizeResult:
    given = separated(A, b, bounds)
    if not given.tensors:
        return solve(A, b, bounds)

    plain, packed = given.without_tensors(copies=True), given.without_tensors().packed

    def error(x, *tensors):
        A, b, _ = plain.packed(tensors)
        return cnp.asarray(A) @ x - cnp.asarray(b)

    def stationarity(x, *tensors):
        A, _, bounds = plain.packed(tensors)
        return projected(cnp.asarray(A).T @ error(x, *tensors), x, bounds)

    equation = Equation(name, stationarity, lambda _, *tensors: solve(*packed(tensors)))
    x, is_solved = solution(equation, np.zeros(np.shape(A)[1]), given.tensors)
    result = equation.result if x.graph is None else scipys.OptimizeResult(success=is_solved)
    result.x, result.fun = x, error(x, *given.tensors)
    result.cost = 0.5 * cnp.sum(result.fun**2)
    return result
