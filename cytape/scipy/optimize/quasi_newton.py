"""BFGS method with an update of the inverse Hessian in n**2 operations; SciPy's takes n**3."""

from typing import Any

import numpy as np
import scipy.optimize as scipys
from scipy.linalg import blas

try:
    from scipy.optimize._optimize import _line_search_wolfe12, _LineSearchError, _status_message
except ImportError:  # a SciPy without these, whose own method is used then
    _line_search_wolfe12 = None

__all__ = ["OPTIONS", "bfgs", "is_available"]

OPTIONS = {"gtol", "maxiter", "norm"}


def is_available() -> bool:
    """Return whether SciPy has the line search that the method takes from it."""
    return _line_search_wolfe12 is not None


def bfgs(
    objective: Any, x0: np.ndarray, gtol: float = 1e-5, norm: float = np.inf,
    maxiter: int | None = None,
) -> scipys.OptimizeResult:
    """Return SciPy's result of the method "BFGS": its steps, up to rounding errors."""
    x, n = x0, x0.size
    maxiter = 200 * n if maxiter is None else maxiter
    value, gradient = objective.value(x), objective.gradient(x)
    before = value + np.linalg.norm(gradient) / 2
    inverse = np.eye(n, order="F")  # its upper triangle
    size, nit, failure = np.linalg.norm(gradient, norm), 0, None
    while size > gtol and nit < maxiter:
        direction = -blas.dsymv(1.0, inverse, gradient)
        try:
            length, _, _, value, before, new_gradient = _line_search_wolfe12(
                objective.value, objective.gradient, x, direction, gradient, value, before,
                amin=1e-100, amax=1e100, c1=1e-4, c2=0.9)
        except _LineSearchError:
            failure = 2, "pr_loss"
            break
        step = length * direction
        x = x + step
        if new_gradient is None:
            new_gradient = objective.gradient(x)
        change, gradient = new_gradient - gradient, new_gradient
        nit += 1
        size = np.linalg.norm(gradient, norm)
        if size <= gtol or not np.any(step):
            break
        if not np.isfinite(value):
            failure = 2, "pr_loss"
            break
        curvature = change @ step
        factor = 1 / curvature if curvature != 0 else 1000.0
        image = blas.dsymv(1.0, inverse, change)
        inverse = blas.dsyr2(
            1.0, step, 0.5 * factor * (1 + factor * (change @ image)) * step - factor * image,
            a=inverse, overwrite_a=True)
    if failure is None and nit >= maxiter:
        failure = 1, "maxiter"
    elif failure is None and not (np.isfinite(size) and np.isfinite(value)):
        failure = 3, "nan"
    status, message = failure or (0, "success")
    inverse = np.triu(inverse) + np.triu(inverse, 1).T
    return scipys.OptimizeResult(
        fun=value, jac=gradient, hess_inv=inverse, nfev=objective.n_calls, njev=objective.n_calls,
        status=status, success=status == 0, message=_status_message[message], x=x, nit=nit)
