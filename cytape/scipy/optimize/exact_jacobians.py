"""Exact Jacobians of users' functions, and products with them."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

import cytape.numpy as cnp
from cytape.autodiff.forward_functional import jvp
from cytape.autodiff.jacobian_functional import jacrev
from cytape.autodiff.recorded_call import RecordedCall
from cytape.graph.tracing.kept_traces import Identity, kept
from cytape.ops.constants import zeros_like
from cytape.scipy.optimize.stored_results import call_near, forgetting
from cytape.tensor import convert_to_tensor
from cytape.tensor.tensor import Tensor

DIRECTIONS = 128  # columns of a Jacobian that are computed at a time
FEW_ROWS = 8  # that take less time than these columns


def jacobian_of(function: Callable, x: np.ndarray, reads: Identity | None = None) -> np.ndarray:
    """Return the Jacobian of a function of a vector, for arrays; by rows if these are few."""
    forget = call_near if reads is None and x.size > DIRECTIONS else lambda *_: None
    if x.size > DIRECTIONS and np.size(function(x)) < x.size // DIRECTIONS * FEW_ROWS:
        forget(function, x)
        return np.asarray(jacrev(function)(x))
    parts = []
    for start in range(0, max(x.size, 1), DIRECTIONS):
        forget(function, x)
        units = np.eye(min(DIRECTIONS, x.size - start), x.size, start)
        parts.append(np.asarray(jvp(function, (x,), (units,), use_batch=True)[1]).T)
    return np.concatenate(parts, 1) if len(parts) > 1 else parts[0]


def linearized_at(function: Callable, x: Any, parameters: Sequence) -> tuple:
    """Return the value, as a vector, and the Jacobian of a function of unknowns of any shape."""
    vector = cnp.ravel(x)
    value, rows = jvp(
        lambda vector: cnp.ravel(function(cnp.reshape(vector, x.shape), *parameters)),
        (vector,), (cnp.diag(cnp.ones_like(vector)),), use_batch=True)
    return value, cnp.transpose(rows)


def _jacobian_at(function, x, parameters):
    return linearized_at(function, x, parameters)[1]


def kept_jacobian(function: Callable, reads: Identity | None, parameters: Sequence) -> Callable:
    """Return the Jacobian of a function in its first argument, as a function of arrays.

    `reads` are those of a solver, to whose residual the function belongs.
    """
    plain = partial(_jacobian_at, function)
    parameters, last = list(parameters), [b"", None]

    def jacobian(x: np.ndarray) -> np.ndarray:
        if x.size > DIRECTIONS:
            return jacobian_of(lambda x: function(x, *parameters), x, reads)
        if last[0] != x.tobytes():  # SciPy's check of the result asks twice for the first one
            call = kept(plain, reads, shapes_of(x, parameters))
            last[:] = x.tobytes(), call(x, parameters)
        return np.array(last[1])

    return forgetting(jacobian, lambda x: function(x, *parameters), reads)


def shapes_of(x: Any, parameters: Sequence) -> list:
    """Return the shapes of the unknowns and the parameters."""
    return [each.shape for each in (x, *parameters)]


def gradients_of(function: Callable, inputs: Sequence, seed: Any) -> list:
    """Return the gradients of a function weighted by a seed; None for integers."""
    moving = tuple([i for i, x in enumerate(inputs) if x.dtype.kind == "f"])
    gradients: list = [None] * len(inputs)
    call = RecordedCall(function, tuple(inputs), {}, moving, False, True)
    connected = isinstance(call.value, Tensor)
    found = call.gradients([call.value], [convert_to_tensor(seed)]) if connected else [
        zeros_like(inputs[i]) for i in moving]
    for i, gradient in zip(moving, found, strict=True):
        gradients[i] = gradient
    return gradients


def product_from_left(residual: Callable, x: Any, v: Any) -> Any:
    """Return the product of a vector and the Jacobian of a function."""
    return gradients_of(residual, (x,), v)[0]
