"""Gradients of solutions by SciPy's solvers: of the adjoint equation, or of the sensitivities.

Both take the step sizes that these equations need. They are called with arrays.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import scipy.integrate as _scipys
from scipy import sparse

import cytape.numpy as cnp
from cytape.autodiff.forward_accumulator import ForwardAccumulator
from cytape.autodiff.forward_functional import jvp
from cytape.ops.creation import identity_op
from cytape.scipy.integrate.linearized_rhs import (
    Linearization,
    RightHandSide,
    TracedLinearization,
)
from cytape.tensor import convert_to_tensor


def _solved(*args: Any, **options: Any) -> np.ndarray:
    found = _scipys.solve_ivp(*args, **options)
    if not found.success:
        raise RuntimeError(f"solve_ivp: its gradient cannot be computed: {found.message}")
    return found.y.T


def _parts(flat: np.ndarray, tensors: list) -> list:
    """Return gradients of tensors from their elements, one after the other; None for integers."""
    found: list = []
    for x in tensors:
        size = x.size if x.spec.trainable else 0
        found.append(flat[:size].reshape(x.shape).astype(x.dtype) if size else None)
        flat = flat[size:]
    return found


def _adjoint_equation(rhs, times, states, tensors, adjoint):
    found = Linearization(rhs, times, states, tensors).vjp_with_states(adjoint)
    return -cnp.concatenate([cnp.ravel(x) for x in found])


def _sensitivity_equations(rhs, times, states, tensors, rows):
    """Return the derivative of a state, followed by those of its derivatives, one per row."""
    state, *tensors = [identity_op(convert_to_tensor(x)) for x in (states[0], *tensors)]
    moving = [x for x in tensors if x.spec.trainable]
    ends = np.cumsum([states.shape[1], *[x.size for x in moving]]).tolist()
    units = np.eye(ends[-1])
    tangents = [rows, *[
        units[:, start:end].reshape(-1, *x.shape)
        for x, start, end in zip(moving, ends, ends[1:], strict=False)]]
    with ForwardAccumulator([state, *moving], tangents, True) as accumulator:
        value = convert_to_tensor(rhs(times[0], state, tensors))
    changes = accumulator.jvp(value, unconnected_gradients="zero")
    return cnp.concatenate([value, cnp.ravel(changes)])


def _changes_with_state(rhs, times, states, tensors, rows):
    """Return the derivatives of these equations in the state, one per row."""
    return jvp(
        lambda y: _sensitivity_equations(rhs, times, y[None], tensors, rows),
        (states[0],), (np.eye(rows.shape[1]),), use_batch=True)[1]


def by_adjoint(
    rhs: RightHandSide, states: Callable, start: float, options: dict, times: np.ndarray,
    g: np.ndarray, tensors: list,
) -> tuple:
    """Integrate the adjoint equation from the last of the times to the start."""
    rhs = rhs.restored
    n = g.shape[1]
    scale = np.max(np.abs(g), initial=0) or 1.0
    options = {**options, "atol": options["rtol"]}

    def backward(t: float, adjoint: np.ndarray) -> np.ndarray:
        at = np.array([t])
        return TracedLinearization(rhs, at, states(at), tensors).call(
            _adjoint_equation, adjoint[None, :n])

    size = sum(x.size for x in tensors if x.spec.trainable)
    adjoint = np.zeros(n + size)
    points = [start, *times]
    for i in range(len(times), 0, -1):
        adjoint[:n] += g[i - 1] / scale
        if points[i] != points[i - 1]:
            adjoint = _solved(backward, (points[i], points[i - 1]), adjoint, **options)[-1]
    adjoint = adjoint * scale
    return adjoint[:n], _parts(adjoint[n:], tensors)


def by_sensitivities(
    rhs: RightHandSide, y0: np.ndarray, start: float, options: dict, times: np.ndarray,
    g: np.ndarray, tensors: list,
) -> tuple:
    """Integrate the derivatives of the state in its start and the tensors, with the state."""
    rhs = rhs.restored
    n = len(y0)
    TracedLinearization(rhs, np.array([start]), y0[None], tensors).vjp(
        np.ones((1, n)))  # raises if the derivative is lost
    size = n + sum(x.size for x in tensors if x.spec.trainable)

    def call(function: Callable, t: float, state: np.ndarray) -> np.ndarray:
        return TracedLinearization(rhs, np.array([t]), state[None, :n], tensors).call(
            function, state[n:].reshape(size, n))

    def jacobian(t: float, state: np.ndarray) -> Any:
        of_state = call(_changes_with_state, t, state).T
        of_rows = sparse.kron(sparse.eye(size), of_state[:n])
        return sparse.hstack(
            [of_state, sparse.vstack([sparse.csc_array((n, n * size)), of_rows])], "csc")

    if options["method"] in ("Radau", "BDF"):
        options = {**options, "jac": jacobian}
    first = np.concatenate([y0, np.eye(size, n).ravel()])
    found = np.broadcast_to(first, (len(times), len(first)))
    if len(times) and times[-1] != start:
        inside = times[times != start]
        solved = _solved(
            partial(call, _sensitivity_equations), (start, times[-1]), first,
            t_eval=np.unique(inside)[::1 if times[-1] > start else -1], **options)
        found = found.copy()
        found[times != start] = solved
    gradient = np.einsum("tn,tsn->s", g, found[:, n:].reshape(-1, size, n))
    return gradient[:n], _parts(gradient[n:], tensors)
