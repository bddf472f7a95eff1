"""Linear differential equations v' = J(t) v + b(t) along a solution, by collocation.

All intervals of a grid are computed at once. The method is Radau IIA: Hairer and Wanner, "Solving
Ordinary Differential Equations II" (1996), IV.5. It damps stiff components, and its transpose is a
method for the adjoint equation.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

import cytape.numpy as cnp
from cytape.scipy.integrate.linearized_rhs import (
    Linearization,
    RightHandSide,
    TracedLinearization,
)

N_STAGES = 5
MOST_ROUNDS, MOST_INTERVALS = 60, 1 << 18


def _radau(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the nodes of Radau's quadrature on [0, 1], and the matrix of the method."""
    polynomial = np.poly1d([1, 0]) ** (n - 1) * np.poly1d([1, -1]) ** n
    nodes = np.sort(polynomial.deriv(n - 1).roots)
    nodes[-1] = 1
    powers = np.arange(n)
    integrals = nodes[:, None] ** (powers + 1) / (powers + 1)
    return nodes, np.linalg.solve((nodes[:, None] ** powers).T, integrals.T).T


NODES, MATRIX = _radau(N_STAGES)
WEIGHTS = MATRIX[-1]


class LinearSteps:
    """Steps of the linearized equation from each point of a grid to the next, and further ones.

    Attributes
    ----------
    steps : array or Tensor, shape (n_intervals, n, n)
        The end of each interval depends by them on its start.
    stages : array or Tensor, shape (n_intervals, n_stages * n, n)
        The end depends on b at the nodes by the transposes of these.
    states : array or Tensor
        At the nodes.
    at_nodes : Linearization
        There.

    Values for intervals that are also in `known`, other steps, are taken from it.
    """

    def __init__(
        self, rhs: RightHandSide, grid: Any, states: Callable, tensors: list,
        is_recorded: bool, finer: np.ndarray | None = None, known: "LinearSteps | None" = None,
    ) -> None:
        starts, ends = grid[:-1], grid[1:]
        if finer is not None:
            starts, ends = (
                np.append(part, more) for part, more in ((starts, finer[:-1]), (ends, finer[1:])))
        lengths = ends - starts
        times = starts[:, None] + lengths[:, None] * NODES
        self.grid = grid
        if is_recorded:
            times = cnp.ravel(times)
            self.states = states(times)
            self.at_nodes: Any = Linearization(rhs, times, self.states, tensors)
            self.stages, self.steps = _matrices(self.at_nodes, lengths)
            return
        self._intervals = starts + 1j * ends
        new, places = self._places_in(known)
        if known is not None and not new.any():
            parts = [part[:0] for part in known._parts]
        else:
            parts = self._computed(rhs, times[new], lengths[new], states, tensors)
        if known is not None:
            parts = [np.concatenate(pair)[places] for pair in zip(known._parts, parts, strict=True)]
        self._parts: list = parts
        of_nodes, self.stages, self.steps = parts
        self.states = np.reshape(of_nodes, (times.size, -1))
        self.at_nodes = TracedLinearization(rhs, times.ravel(), self.states, tensors)

    @staticmethod
    def _computed(rhs, times, lengths, states, tensors):
        """Return the states at the nodes, the stages and the steps, one row per interval."""
        times = times.ravel()
        found = states(times)
        call = TracedLinearization(rhs, times, found, tensors).call
        return [found.reshape(len(lengths), -1), *map(np.asarray, call(_matrices_at, lengths))]

    def _places_in(self, known: "LinearSteps | None") -> tuple:
        """Return which intervals are new, and the places of all in the known and the new ones."""
        if known is None:
            return np.full(len(self._intervals), True), None
        order = np.argsort(known._intervals)
        found = np.searchsorted(known._intervals[order], self._intervals)
        places = order[np.minimum(found, len(order) - 1)]
        new = known._intervals[places] != self._intervals
        places[new] = len(order) + np.arange(np.sum(new))
        return new, places

    def forced(self, tangents: list) -> Any:
        """Return the contribution of b to the end of each interval, from tangents of tensors."""
        b = cnp.reshape(self.at_nodes.jvp(tangents), (len(self.stages), -1))
        return cnp.einsum("ksn,ks->kn", self.stages, b)

    def march(self, start: Any, forced: Any) -> list:
        """Return the solution at each point of the grid."""
        found = [start]
        for step, b in zip(self.steps[:len(self.grid) - 1], forced, strict=False):
            found.append(step @ found[-1] + b)
        return found

    def march_back(self, jumps: list) -> list:
        """Return the adjoint at each point of the grid; jumps are those of the points, or None."""
        adjoint = jumps[-1]
        found = [adjoint]
        steps = self.steps[:len(jumps) - 1]
        for step, jump in zip(steps[::-1], jumps[-2::-1], strict=True):
            adjoint = adjoint @ step
            adjoint = adjoint if jump is None else adjoint + jump
            found.append(adjoint)
        return found[::-1]

    def seeds(self, adjoints: Any) -> Any:
        """Return the adjoint of b at each node, given the adjoint at the end of each interval."""
        count, n = adjoints.shape
        found = cnp.einsum("ksn,kn->ks", self.stages[:count], adjoints)
        further = np.zeros((len(self.stages) - count, found.shape[1]))
        return cnp.reshape(cnp.concatenate([found, further]), (-1, n))


@cache
def _weights(n: int) -> np.ndarray:
    return np.kron(WEIGHTS[:, None], np.eye(n))


def _matrices(at_nodes: Linearization, lengths: Any) -> tuple:
    """Return the stages and steps of intervals."""
    jacobian = at_nodes.jacobian()
    n = jacobian.shape[-1]
    size = N_STAGES * n
    jacobian = cnp.reshape(jacobian, (-1, N_STAGES, n, n))
    lengths = lengths[:, None, None]
    coupling = cnp.einsum("kij,kipq->kjqip", lengths * MATRIX, jacobian)
    stages = cnp.linalg.solve(
        np.eye(size) - cnp.reshape(coupling, (-1, size, size)), lengths * _weights(n))
    return stages, np.eye(n) + cnp.swapaxes(stages, 1, 2) @ cnp.reshape(jacobian, (-1, size, n))


def _matrices_at(rhs, times, states, tensors, lengths):
    return _matrices(Linearization(rhs, times, states, tensors), lengths)


def halved(grid: np.ndarray, chosen: Any = slice(None)) -> np.ndarray:
    """Return a grid with the middle of each chosen interval added."""
    finer = np.empty(2 * len(grid) - 1)
    finer[::2], finer[1::2] = grid, (grid[:-1] + grid[1:]) / 2
    is_kept = np.full(len(finer), True)
    is_kept[1::2] = False
    is_kept[1::2][chosen] = True
    return finer[is_kept]


def by_halves(parts: Any) -> tuple:
    """Return parts of steps on a grid, and those of the first and the second halves of these."""
    count = len(parts) // 3
    return parts[:count], parts[count::2], parts[count + 1::2]


def refined(
    grid: np.ndarray, steps_on: Callable, errors: Callable, name: str,
) -> LinearSteps:
    """Return steps on a grid on which each step differs by little from two of half the length.

    `errors` is called with the steps on a grid, followed by those on the halved grid, and returns
    for each interval the ratio of error to tolerance.
    """
    for _ in range(MOST_ROUNDS):
        steps = steps_on(grid)
        lengths = np.abs(np.diff(grid))
        resolvable = lengths > 1e-14 * np.maximum(np.abs(grid[1:]), lengths.sum())
        chosen = resolvable & (errors(steps) > 1)
        if not chosen.any():
            return steps
        grid = halved(grid, chosen)
        if len(grid) > MOST_INTERVALS:
            break
    raise RuntimeError(
        f"{name}: the derivative of the solution needs steps that are too small; set larger "
        "tolerances, or check whether the right-hand side is differentiable")
