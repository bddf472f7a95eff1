"""Roots and fixed points, with exact Jacobians and implicit derivatives."""

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.optimize as scipys

import cytape.numpy as cnp
from cytape.autodiff.custom.bound_rule import restored
from cytape.errors import NotDifferentiableError
from cytape.graph.tracing.kept_traces import identity_of
from cytape.scipy.optimize.exact_jacobians import kept_jacobian
from cytape.scipy.optimize.implicit import Equation, held, require_no_captures, run, solution
from cytape.scipy.optimize.unknowns import Unknowns, separated, tuple_of
from cytape.tensor.tensor import Tensor

WITH_JACOBIANS = {"hybr", "lm"}
HALVINGS = 30  # of a step of Newton's method that does not decrease the residual


def root(
    fun: Callable, x0: Any, args: Any = (), method: str = "hybr", jac: Any = None, tol: Any = None,
    callback: Any = None, options: Any = None,
) -> scipys.OptimizeResult:
    """Find a root of a function of a vector, as `scipy.optimize.root`.

    The methods "hybr" and "lm" get the exact Jacobian, unless `jac` is given (``jac=False``:
    SciPy's differences). The method "newton", which SciPy does not have, factorises the Jacobian in
    each step and shortens steps that do not decrease the residual; its options are ``maxiter`` and
    ``xtol``, relative to the root. `x0` may be a structure of arrays, which `fun` takes and
    returns.

    If `args` contain tensors, `x` of the result is a tensor, differentiable in them by the implicit
    function theorem. If the method fails (``success`` is False), its derivatives raise an error.
    All derivatives share one factorisation of the Jacobian, which is that of the last step of the
    method "newton".

    Examples
    --------
    >>> import cytape
    >>> import cytape.numpy as np
    >>> from cytape.scipy.optimize import root
    >>> def f(x, a):
    ...     return np.array([x[0] + x[1] - a, x[0] * x[1] - 2])
    >>> root(f, [0.0, 5.0], (3.0,)).x.round(6)
    array([1., 2.])
    >>> cytape.jacobian(lambda a: root(f, [0.0, 5.0], (a,)).x)(3.0).round(6)
    array([-1.,  2.])
    """
    args, unknowns = tuple_of(args), Unknowns(x0)
    given = separated(args)
    plain, rules = given.without_tensors(copies=True), held("root", [fun, jac], given)
    packed = given.without_tensors().packed
    reads = identity_of("root", fun, plain.args, plain.is_tensor, unknowns.outline, jac is True)
    is_newton = method.lower() == "newton"

    def values(x, *parameters):
        value = rules[0](unknowns.unpack(x), *plain.packed(parameters)[0])
        return cnp.asarray(unknowns.pack(value[0] if jac is True else value))

    def residual(x, *parameters):
        value = values(x, *parameters)
        if value.spec.known if isinstance(value, Tensor) else True:
            _require_as_many(np.size(value), np.size(x))
        return cnp.reshape(value, np.shape(x))

    def solve(x0, *parameters):
        (args,), (fun, jac) = packed(parameters), map(restored, rules)
        if is_newton:
            return _newton(equation, x0, parameters, tol, callback, **(options or {}))

        def function(x):
            value = fun(unknowns.unpack(x), *args)
            if jac is True:
                return np.asarray(unknowns.pack(value[0])), value[1]
            return np.asarray(unknowns.pack(value))

        if not unknowns.is_structure and jac is not True:
            function = lambda x: np.asarray(fun(x, *args))  # noqa: E731

        slope = jac
        if callable(jac):
            slope = lambda x: jac(unknowns.unpack(x), *args)  # noqa: E731
        elif jac is None and method.lower() in WITH_JACOBIANS:
            slope = kept_jacobian(values, reads, parameters)
        return scipys.root(function, x0, (), method, slope, tol, callback, options)

    equation = Equation("root", residual, solve, reads=reads, rules=rules)
    if not given.tensors and not isinstance(unknowns.vector, Tensor):
        require_no_captures("root", lambda x: fun(unknowns.unpack(x), *args), unknowns.vector)
        result = run("root", solve, np.atleast_1d(unknowns.vector) if is_newton
                     else unknowns.vector)
        result.x = unknowns.unpack(result.x)
        return result
    library: Any = cnp if isinstance(unknowns.vector, Tensor) else np
    start = library.atleast_1d(unknowns.vector)
    if method.lower() in WITH_JACOBIANS:
        start = start.ravel()
    x, is_solved = solution(equation, start, given.tensors)
    result = equation.result if x.graph is None else scipys.OptimizeResult(success=is_solved)
    result.x = unknowns.unpack(x)
    return result


def _require_as_many(equations, unknowns):
    if equations != unknowns:
        raise NotDifferentiableError(
            f"root: {equations} equations with {unknowns} unknowns have no derivatives, which need "
            "as many unknowns as equations: use least_squares")


def _newton(equation, x0, parameters, tol, callback, maxiter=50, xtol=1.49012e-8):
    """Return the result of Newton's method; the factors of its last step are kept."""
    xtol = xtol if tol is None else tol
    x = np.array(x0, float)
    residual = np.asarray(equation.residual(x, *parameters), float)
    message, nfev = f"The tolerance was not reached in {maxiter} steps.", 1
    for nit in range(1, maxiter + 1):
        try:
            step = equation.system(x, parameters).solve(residual.ravel(), False).reshape(x.shape)
        except NotDifferentiableError:
            message = "The Jacobian is singular."
            break
        size = np.linalg.norm(residual)
        for _ in range(HALVINGS):
            nearer = x - step
            is_last = np.linalg.norm(step) <= xtol * np.linalg.norm(nearer)
            residual = np.asarray(equation.residual(nearer, *parameters), float)
            nfev += 1
            if is_last or np.linalg.norm(residual) < size:
                break
            step = step / 2
        else:
            message = "The residual does not decrease along Newton's direction."
            break
        x = nearer
        if callback is not None:
            callback(x, residual)
        if is_last or size == 0:
            equation.refine_system(x, parameters)
            return scipys.OptimizeResult(
                x=x, success=True, status=1, message="The solution converged.", fun=residual,
                nit=nit, nfev=nfev, njev=nit, method="newton")
    return scipys.OptimizeResult(
        x=x, success=False, status=0, message=message, fun=residual, nit=nit, nfev=nfev, njev=nit,
        method="newton")
