"""Gradients of solutions by SciPy's solvers: of the adjoint equation, or of the sensitivities.

Both take the step sizes that these equations need. They are called with arrays.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.integrate as _scipys
from scipy import sparse

from cytape.scipy.integrate.linearized_rhs import Linearization, RightHandSide
from cytape.tensor.tensor import data_of


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


def _flat(gradients: list) -> np.ndarray:
    return np.concatenate([np.ravel(np.asarray(x)) for x in gradients])


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
        at_t = Linearization(rhs, np.array([t]), states(np.array([t])), tensors)
        return -_flat(at_t.vjp_with_states(adjoint[None, :n]))

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
    size = n + sum(x.size for x in tensors if x.spec.trainable)
    given = [data_of(x)[()] for x in tensors]

    def forward(t: float, state: np.ndarray) -> np.ndarray:
        y, sensitivities = state[:n], state[n:].reshape(n, size)
        at_t = Linearization(rhs, np.array([t]), y[None], tensors)
        rows = np.array([_flat(at_t.vjp_with_states(row[None])) for row in np.eye(n)])
        change = rows[:, :n] @ sensitivities
        change[:, n:] += rows[:, n:]
        return np.concatenate([np.asarray(rhs(t, y, given)), change.ravel()])

    def jacobian(t: float, state: np.ndarray) -> Any:
        """Return an approximation, without second derivatives, for Newton's method."""
        at_t = Linearization(rhs, np.array([t]), state[None, :n], tensors)
        of_state = np.asarray(at_t.jacobian())[0]
        return sparse.block_diag([of_state, sparse.kron(of_state, sparse.eye(size))], "csc")

    if options["method"] in ("Radau", "BDF"):
        options = {**options, "jac": jacobian}
    first = np.concatenate([y0, np.eye(n, size).ravel()])
    found = np.broadcast_to(first, (len(times), len(first)))
    if len(times) and times[-1] != start:
        inside = times[times != start]
        solved = _solved(forward, (start, times[-1]), first, t_eval=np.unique(inside)[
            ::1 if times[-1] > start else -1], **options)
        found = found.copy()
        found[times != start] = solved
    gradient = np.einsum("tn,tns->s", g, found[:, n:].reshape(-1, n, size))
    return gradient[:n], _parts(gradient[n:], tensors)
