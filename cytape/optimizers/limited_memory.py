"""L-BFGS of SciPy on structures of variables and arrays, with exact gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cytape.autodiff.functional import value_and_grad
from cytape.autodiff.gradient_tape import GradientTape
from cytape.optimizers.parameter_checks import named_parameters
from cytape.tensor.indexed_slices import IndexedSlices
from cytape.tensor.structures import leaves_of_operand
from cytape.tensor.variable import Variable

__all__ = ["lbfgs"]


def lbfgs(
    loss: Callable[..., Any], parameters: Any, *, max_iterations: int = 1000,
    gradient_tolerance: float = 1e-6, history: int = 10,
    callback: Callable[[int, float], Any] | None = None, **options: Any,
) -> Any:
    """Minimize a function by L-BFGS, and leave the result in the parameters.

    It needs SciPy, whose method "L-BFGS-B" of `scipy.optimize.minimize` this is. All gradients are
    those of the whole function: data that change from call to call need another optimizer.

    Parameters
    ----------
    loss : callable
        Returns a number. Called without arguments if the parameters are variables, otherwise with
        the parameters.
    parameters : structure of Variable, or of ndarray
        The start; changed in place.
    max_iterations : int, optional
    gradient_tolerance : float, optional
        Stop where no element of the gradient is larger.
    history : int, optional
        The number of gradients kept.
    callback : callable, optional
        Called after each iteration with its number, from 1 on, and the loss. If it returns True,
        the minimization stops.
    **options
        Further options of SciPy's method, such as `ftol` and `maxfun`.

    Returns
    -------
    scipy.optimize.OptimizeResult
        `success` and `message` say why it stopped; `x` and `jac` are flat.

    Raises
    ------
    ImportError
        If SciPy is not installed.
    TypeError, ValueError
        For parameters that optimizers do not take. If the loss raises an error, the parameters
        have their first values.

    Examples
    --------
    >>> import numpy as np
    >>> import cytape
    >>> x = {"a": np.array(-1.0), "b": np.array(2.0)}
    >>> result = cytape.optimizers.lbfgs(
    ...     lambda x: (1 - x["a"])**2 + 100 * (x["b"] - x["a"]**2)**2, x)
    >>> result.success, x["a"].round(4), x["b"].round(4)
    (True, np.float64(1.0), np.float64(1.0))
    """
    try:
        from scipy.optimize import minimize
    except ImportError as error:
        raise ImportError(
            "cytape.optimizers.lbfgs needs SciPy, an optional dependency: pip install scipy"
        ) from error
    _, leaves = named_parameters(parameters)
    of_variables = isinstance(leaves[0], Variable)
    if any(isinstance(leaf, Variable) != of_variables for leaf in leaves):
        raise TypeError("lbfgs takes variables or arrays, not a mixture")
    value_and_gradients = (
        _of_variables(loss, leaves) if of_variables else _of_arrays(loss, parameters))

    def function(x: np.ndarray) -> tuple[float, np.ndarray]:
        _unpack(x, leaves)
        value, gradients = value_and_gradients()
        return float(value), _flat(gradients, leaves)

    n_done = 0

    def after_iteration(intermediate_result: Any) -> None:
        nonlocal n_done
        n_done += 1
        if callback is not None and callback(n_done, float(intermediate_result.fun)):
            raise StopIteration

    start = _flat([leaf.numpy() if of_variables else leaf for leaf in leaves], leaves)
    try:
        result = minimize(
            function, start, jac=True, method="L-BFGS-B", callback=after_iteration,
            options={"maxiter": max_iterations, "gtol": gradient_tolerance, "maxcor": history,
                     **options})
    except BaseException:
        _unpack(start, leaves)
        raise
    _unpack(result.x, leaves)
    if np.isnan(result.fun):  # SciPy takes it for a minimum
        result.success, result.message = False, "the loss is not a number"
    return result


def _of_variables(loss: Callable[..., Any], leaves: list[Any]) -> Callable[[], Any]:
    def value_and_gradients() -> tuple[Any, list[Any]]:
        with GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(leaves)
            value = loss()
        return value, tape.gradient(value, leaves)

    return value_and_gradients


def _of_arrays(loss: Callable[..., Any], parameters: Any) -> Callable[[], Any]:
    differentiated = value_and_grad(loss)

    def value_and_gradients() -> tuple[Any, list[Any]]:
        value, gradients = differentiated(parameters)
        return value, leaves_of_operand(gradients)

    return value_and_gradients


def _unpack(x: np.ndarray, leaves: list[Any]) -> None:
    """Give the parameters the values in a vector."""
    start = 0
    for leaf in leaves:
        size = int(np.prod(leaf.shape))
        value = x[start:start + size].reshape(leaf.shape).astype(leaf.dtype)
        if isinstance(leaf, Variable):
            leaf.assign(value)
        else:
            leaf[...] = value
        start += size


def _flat(arrays: list[Any], leaves: list[Any]) -> np.ndarray:
    """Join arrays, of the shapes of the parameters, to a vector; None is zeros."""
    return np.concatenate([
        np.zeros(int(np.prod(leaf.shape))) if array is None else np.asarray(
            array.to_tensor() if isinstance(array, IndexedSlices) else array).ravel()
        for array, leaf in zip(arrays, leaves, strict=True)]).astype(np.float64)
