"""Solutions of differential equations as functions of their start, times and arguments.

A `Trajectory` has the solution at any time, as computed. Derivatives follow from the equation that
is linearized along it, or from its adjoint: Cao, Li, Petzold and Serban, "Adjoint sensitivity
analysis for differential-algebraic equations" (2003). Neither integrates the state backwards.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import cytape.numpy as cnp
from cytape.autodiff.wrapped_calls import followed, record, values_at_call
from cytape.ops.engine.custom_op import GradientsIfNeeded
from cytape.scipy.integrate.linear_steps import LinearSteps, by_halves, halved, refined
from cytape.scipy.integrate.linearized_rhs import RightHandSide
from cytape.tensor import convert_to_tensor
from cytape.tensor.recording.state import unrecorded
from cytape.tensor.tensor import data_of

FINEST = 1e-12  # tolerance
ROUNDING = 10 * float(np.finfo(float).eps)
# Tolerance of a gradient that is a small difference of large terms, as that of an invariant:
# relative to these terms, and to `rtol`.
OF_TERMS = 1e-3


class Trajectory:
    """Solution of y' = f(t, y, args), and its derivatives.

    Parameters
    ----------
    states : callable
        Returns the states at an array of times, one per row.
    grid : ndarray
        Times from the start to the end between which the solution is smooth.
    rtol, atol : float or ndarray
    other_gradients : callable, optional
        Computes the gradients in the start and the tensors in place of this class, given the
        adjoints of the states at an array of times.
    """

    def __init__(
        self, rhs: RightHandSide, states: Callable, grid: np.ndarray, rtol: Any, atol: Any,
        other_gradients: Callable | None = None,
    ) -> None:
        self.rhs, self.states, self.grid = rhs, states, grid
        self._rtol = max(float(np.max(rtol)), FINEST)
        self._least = atol / self._rtol  # of a component of the state, to which errors are compared
        self._other_gradients = other_gradients
        self._kept: dict[bytes, LinearSteps] = {}

    def at(
        self, y0: Any, t0: Any, times: Any, tensors: list, found: np.ndarray | None = None,
    ) -> Any:
        """Return the states at some times, one per row, recorded as functions of the arguments.

        `found`: these, if they are known.
        """
        y0, t0, times = map(convert_to_tensor, (y0, t0, times))
        inputs = [y0, t0, times, *tensors]
        if found is None:
            found = self.states(data_of(times))
        given = values_at_call(inputs)
        return record(
            self.rhs.name, convert_to_tensor(found), inputs, partial(self._backward, given),
            lambda *tangents: [self._tangents(given, tangents)])

    # -- the grid --------------------------------------------------------------------------------

    def _grid(self, start: float, times: np.ndarray) -> np.ndarray:
        """Return the points of the grid up to the last of the times, with all times among them."""
        sign = _sign(self.grid)
        last = (sign * times).max(initial=sign * start)
        grid = self.grid[sign * self.grid <= last]
        return _merged(sign, [start], grid.tolist(), times.tolist())

    def _steps(self, given: list, grid: np.ndarray) -> LinearSteps:
        """Return steps as arrays."""
        key = grid.tobytes()
        if key not in self._kept:
            known = next(iter(self._kept.values()), None)
            self._kept = {key: LinearSteps(
                self.rhs, grid, self.states, given[3:], False, halved(grid), known)}
        return self._kept[key]

    def _refined(self, given: list, errors: Callable, is_recorded: bool) -> tuple:
        """Return steps on a grid that is fine enough, and the places of the times in it.

        If all times are the start, there are no steps.
        """
        y0, t0, times, *tensors = given
        start, known = float(data_of(t0)), data_of(times)
        grid = self._grid(start, known)
        if len(grid) < 2 and not is_recorded:
            return None, [0] * len(known)
        with unrecorded():
            steps = refined(
                grid, lambda grid: self._steps(given, grid), errors, self.rhs.name
            ) if len(grid) > 1 else None
        grid, sign = grid if steps is None else steps.grid, _sign(grid)
        self.grid = _merged(sign, self.grid.tolist(), grid.tolist())
        if not is_recorded:
            return steps, positions(grid, known)
        # Each time is a point of its own, since it may move.
        inner = grid[~np.isin(grid, [start, *known])]
        points = np.concatenate([[start], known, inner])
        order = np.argsort(sign * points, kind="stable")
        grid = points[order]
        if followed([t0, times]):
            grid = cnp.concatenate([cnp.reshape(t0, (1,)), times, inner])[order]
        steps = LinearSteps(
            self.rhs, grid, lambda times: self.at(y0, t0, times, tensors), tensors, True)
        return steps, np.argsort(order)[1:1 + len(known)].tolist()

    def _scale(self, steps: LinearSteps) -> np.ndarray:
        return np.abs(steps.states).max(0, initial=0) + self._least

    # -- reverse mode ----------------------------------------------------------------------------

    def _backward(self, given: list, g: Any) -> GradientsIfNeeded:
        is_recorded = followed([*given, g])
        y0, t0, times, *tensors = given

        def gradients(needs: tuple) -> list:
            if self._other_gradients is not None and not is_recorded:
                with unrecorded():
                    adjoint, of_tensors = self._other_gradients(data_of(times), data_of(g), tensors)
            else:
                adjoint, of_tensors = self._adjoint(given, g, is_recorded)
            found = [adjoint, None, None, *of_tensors]
            if needs[1] or needs[2]:
                velocities = self._velocities(given, is_recorded)
                found[1] = -cnp.sum(adjoint * velocities[0])
                found[2] = cnp.sum(g * velocities[1:], 1)
            return [x if x is None else convert_to_tensor(x) for x in found]

        return GradientsIfNeeded(gradients)

    def _velocities(self, given: list, is_recorded: bool) -> Any:
        """Return the right-hand side at the start and at the times of the results."""
        y0, t0, times, *tensors = given
        if is_recorded:
            states = self.at(y0, t0, times, tensors)
        else:
            y0, t0, times = (data_of(x) for x in (y0, t0, times))
            states = self.states(times)
        points = cnp.concatenate([cnp.reshape(t0, (1,)), times])
        return self.rhs.at(points, cnp.concatenate([y0[None], states]), tensors)

    def _adjoint(self, given: list, g: Any, is_recorded: bool) -> tuple:
        y0, t0, times, *tensors = given
        known = data_of(g)
        steps, places = self._refined(
            given, partial(self._errors_back, data_of(times), known, tensors), is_recorded)
        if not is_recorded:
            g = known
        if steps is None:
            return cnp.sum(g, 0), [None] * len(tensors)
        adjoints = steps.march_back(jumps_at(places, len(steps.grid), g))
        seeds = steps.seeds(cnp.stack(adjoints[1:]))
        return adjoints[0], steps.at_nodes.vjp(seeds) if tensors else []

    def _errors_back(
        self, times: np.ndarray, g: np.ndarray, tensors: list, steps: LinearSteps,
    ) -> np.ndarray:
        scale = self._scale(steps)
        jumps = jumps_at(positions(steps.grid, times), len(steps.grid), g)
        after = np.array(steps.march_back(jumps))[1:]
        first, second = by_halves(steps.steps)[1:]
        whole, middle = _times(after, steps.steps[:len(after)]), _times(after, second)
        start = _times(middle, first)
        size = np.max(np.abs(after) @ scale, initial=0)
        found = _ratio(np.abs(whole - start) @ scale, self._rtol * size)
        if tensors:
            parts = by_halves(np.asarray(steps.forced([_probe(x) for x in tensors])))
            of_steps, of_first, of_second = (
                np.einsum("kn,kn->k", part, adjoint)
                for part, adjoint in zip(parts, (after, middle, after), strict=True))
            terms = np.sum(np.abs(parts[0] * after))
            found = np.fmax(found, _ratio(
                np.abs(of_steps - of_first - of_second),
                self._rtol * (np.sum(np.abs(of_steps)) + OF_TERMS * terms)
                + ROUNDING * (terms + size)))
        return found

    # -- forward mode ----------------------------------------------------------------------------

    def _tangents(self, given: list, tangents: tuple) -> Any:
        is_recorded = followed([*given, *[x for x in tangents if x is not None]])
        of_y0, of_t0, of_times, *of_tensors = tangents
        known = [None if x is None else data_of(x) for x in tangents]
        with unrecorded():
            velocities = np.asarray(self._velocities(given, False))
        start = known[0] - velocities[0] * known[1]
        steps, places = self._refined(
            given, partial(self._errors_forward, start, given[3:], of_tensors), is_recorded)
        if is_recorded:
            velocities = self._velocities(given, True)
            start = of_y0 - velocities[0] * of_t0
        else:
            of_times = known[2]
        found = [start] if steps is None else steps.march(start, steps.forced(of_tensors))
        rows = cnp.stack([found[i] for i in places]) if places else velocities[1:]
        return convert_to_tensor(rows + velocities[1:] * of_times[:, None])

    def _errors_forward(
        self, start: np.ndarray, tensors: list, tangents: list, steps: LinearSteps,
    ) -> np.ndarray:
        scale = self._scale(steps)
        b, b_first, b_second = by_halves(np.asarray(steps.forced(tangents)))
        _, first, second = by_halves(steps.steps)
        before = np.array(steps.march(start, b))
        whole = before[1:]
        middle = np.einsum("kij,kj->ki", first, before[:-1]) + b_first
        end = np.einsum("kij,kj->ki", second, middle) + b_second
        changes = [  # relative to the tensors
            np.max(np.abs(data_of(dx)), initial=0) / (np.max(np.abs(data_of(x)), initial=0) or 1)
            for x, dx in zip(tensors, tangents, strict=True) if dx is not None]
        return _ratio(
            np.max(np.abs(whole - end) / scale, 1, initial=0),
            self._rtol * np.max(np.abs(before) / scale, initial=0)
            + ROUNDING * max(changes, default=0))


def _times(vectors: np.ndarray, matrices: np.ndarray) -> np.ndarray:
    """Return the product of each vector with a matrix on its right."""
    found: np.ndarray = (vectors[:, None] @ matrices)[:, 0]
    return found


def _ratio(errors: np.ndarray, tolerance: float) -> np.ndarray:
    """Return errors relative to a tolerance, which may be 0."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return errors / tolerance


def _merged(sign: float, *parts: list) -> np.ndarray:
    """Return the times in all lists once, in their order."""
    return np.array(sorted(set().union(*parts), reverse=sign < 0))


def _sign(grid: np.ndarray) -> float:
    """Return 1 for increasing times, -1 for decreasing ones."""
    return 1.0 if grid[-1] >= grid[0] else -1.0


def positions(grid: np.ndarray, times: np.ndarray) -> list:
    """Return where times are in a grid that has them all."""
    sign = _sign(grid)
    return np.searchsorted(sign * grid, sign * times).tolist()


def jumps_at(places: list, count: int, g: Any) -> list:
    """Return the gradient of the results at each point of a grid, None where there is none."""
    jumps: list = [None] * count
    for i, place in enumerate(places):
        jumps[place] = g[i] if jumps[place] is None else jumps[place] + g[i]
    if jumps[-1] is None:
        jumps[-1] = np.zeros(g.shape[1])
    return jumps


def _probe(x: Any) -> Any:
    """Return a direction of a tensor in which errors of its gradient are measured."""
    if not x.spec.trainable:
        return None
    values = data_of(x)
    spread = 1.5 + np.cos(np.arange(values.size)).reshape(values.shape)
    size = np.abs(values)
    size = size + 1e-3 * np.max(size, initial=1e-3)
    return convert_to_tensor((spread * size).astype(x.dtype))
