"""`solve_ivp` of tensors."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import scipy.integrate as _scipys
from scipy.optimize import OptimizeResult

import cytape.numpy as cnp
from cytape.autodiff.custom.bound_rule import noting
from cytape.autodiff.custom.custom_gradient import stop_gradient
from cytape.autodiff.forward_accumulator import ForwardAccumulator
from cytape.graph.tracing.kept_traces import require_of_tracing
from cytape.ops.calls.operands import is_tensor, joined
from cytape.ops.calls.symbolic import graph_for
from cytape.ops.creation import identity_op
from cytape.ops.python.python_ops import LEAVES_CYTAPE
from cytape.scipy.integrate.graph_calls import call_in_graph, reads_others
from cytape.scipy.integrate.linearized_rhs import RightHandSide, TracedLinearization
from cytape.scipy.integrate.solver_gradients import by_adjoint, by_sensitivities
from cytape.scipy.integrate.trajectories import Trajectory
from cytape.tensor import convert_to_tensor, nest
from cytape.tensor.recording.state import anybody_records, unrecorded
from cytape.tensor.tensor import data_of
from cytape.tensor.values.spec import symbolic_spec

IMPLICIT = ("Radau", "BDF", "LSODA")
MOST_DENSE = 32  # components of the state for which steps are matrices


def solve_ivp(
    fun: Callable, t_span: Any, y0: Any, method: Any = "RK45", t_eval: Any = None,
    dense_output: bool = False, events: Any = None, vectorized: bool = False, args: Any = None,
    *, gradient: str = "adjoint", **options: Any,
) -> Any:
    """Solve an initial value problem, as `scipy.integrate.solve_ivp`.

    Has derivatives in `y0`, `t_span`, `t_eval` and the tensors in `args`, a tuple of any
    structures. Tensors that `fun` and `events` read must be among `args`. `t` and `y` of the
    result, `t_events`, `y_events` and ``sol(t)`` are tensors if an argument is one.

    Parameters
    ----------
    gradient : {"adjoint", "forward"}
        How gradients are computed: by the adjoint equation along the solution, or by sensitivities
        that are solved for with the state, in steps that suit both. Forward mode takes the
        linearized equation, second derivatives the adjoint one, whatever is chosen.

    Notes
    -----
    Without `t_eval`, the times of the results are those of the solver's steps. They are constants,
    except for the ends. The implicit methods get the exact Jacobian of `fun`, if `jac` is None and
    there are tensors.

    Examples
    --------
    >>> import cytape
    >>> from cytape.scipy.integrate import solve_ivp
    >>> def decayed(rate):
    ...     return solve_ivp(
    ...         lambda t, y, rate: -rate * y, (0.0, 1.0), [1.0], args=(rate,), rtol=1e-8).y[0, -1]
    >>> cytape.grad(decayed)(2.0).round(6)  # -exp(-2)
    np.float64(-0.135335)
    """
    if gradient not in ("adjoint", "forward"):
        raise ValueError(f'gradient must be "adjoint" or "forward", got {gradient!r}')
    leaves = [] if args is None else nest.flatten(args)
    t_span, y0, t_eval = tuple(t_span), joined(y0), joined(t_eval)
    given = [*t_span, y0, t_eval, *leaves]
    if not any(map(is_tensor, given)):
        try:
            return _scipys.solve_ivp(
                fun, t_span, y0, method, t_eval, dense_output, events, vectorized, args, **options)
        except LEAVES_CYTAPE as error:
            raise reads_others("solve_ivp", error) from None  # its advice is wrong here
    if getattr(args, "ndim", 1) == 0:
        raise TypeError("Supplied 'args' cannot be unpacked. Please supply `args` as a tuple (e.g. "
                        "`args=(x,)`)")
    args = () if args is None else tuple(args)
    users = fun, options.pop("jac", None), *_event_list(events)
    call = partial(
        _solved, method=method, vectorized=vectorized, gradient=gradient, options=options)
    graph = graph_for([x for x in given if is_tensor(x)])
    if graph is None:
        return call(users, t_span, y0, t_eval, args, dense_output=dense_output)
    if dense_output:
        raise TypeError("solve_ivp: dense_output is not supported in graphs and traced functions")
    return _in_graph(graph, call, users, t_span, y0, t_eval, args)


def _event_list(events: Any) -> list:
    return [] if events is None else [events] if callable(events) else list(events)


def _in_graph(
    graph: Any, call: Callable, users: tuple, t_span: tuple, y0: Any, t_eval: Any, args: tuple,
) -> Any:
    def run(*arguments: Any) -> list:  # in loops, lengths may differ along the first axis only
        found = call(*arguments, dense_output=False)
        if not found.success:
            raise RuntimeError(f"solve_ivp failed: {found.message}")
        return [found.t, found.y.T, *(found.t_events or ()), *(found.y_events or ())]

    _, _, *functions = users
    n_events, real = len(functions), np.dtype(float)
    dtype = np.result_type(cnp.asarray(y0).dtype, real)
    n = np.shape(y0)[0]
    ends = any(getattr(event, "terminal", False) for event in functions)
    times = None if t_eval is None or ends else np.shape(t_eval)[0]
    t, y, *of_events = call_in_graph(graph, "solve_ivp", run, users, (t_span, y0, t_eval, args), [
        symbolic_spec((times,), real), symbolic_spec((times, n), dtype),
        *[symbolic_spec((None,), real)] * n_events, *[symbolic_spec((None, n), dtype)] * n_events])
    return OptimizeResult(
        t=t, y=cnp.transpose(y), sol=None, t_events=of_events[:n_events] if n_events else None,
        y_events=of_events[n_events:] if n_events else None, success=True)


def _solved(
    users: Sequence, t_span: tuple, y0: Any, t_eval: Any, args: tuple, *, dense_output: bool,
    method: Any, vectorized: bool, gradient: str, options: dict,
) -> Any:
    """Solve a problem with eager tensors, given the right-hand side, its Jacobian and events."""
    fun, jac, *functions = users
    y0 = cnp.asarray(y0)
    y0 = convert_to_tensor(y0 if y0.dtype.kind == "c" else y0.astype(float))
    t0, t1 = (convert_to_tensor(cnp.asarray(t, float)) for t in t_span)
    if t_eval is not None:
        t_eval = cnp.asarray(t_eval, float)
    rhs = RightHandSide("solve_ivp", fun, args, y0.dtype.kind == "c")
    tensors = rhs.tensors
    if callable(jac):
        jac = rhs.of_values(jac, tensors)
    elif method in IMPLICIT and jac is None:
        jac = _exact_jacobian(rhs.restored, float(data_of(t0)), data_of(y0), tensors)
    known = noting(
        [rhs.function], _scipys.solve_ivp, rhs.of_values(fun, tensors), (data_of(t0), data_of(t1)),
        data_of(y0), method, data_of(t_eval) if is_tensor(t_eval) else t_eval, True,
        [_event_of_values(rhs, event, tensors) for event in functions] or None, vectorized,
        **options, **({} if jac is None else {"jac": jac}))
    start = rhs.as_real(y0)
    solution = known.sol
    states = Interpolants(rhs, solution)
    rtol, atol = options.get("rtol", 1e-3), np.asarray(options.get("atol", 1e-6))
    if rhs.is_complex and atol.ndim:
        atol = np.concatenate([atol, atol])
    other, first = None, float(data_of(t0))
    limits = {"method": method, "rtol": rtol, "atol": np.min(atol)}
    if any(x.dtype.kind == "c" for x in tensors):
        pass  # SciPy's solvers take no complex adjoints of real states
    elif gradient == "forward":
        other = partial(by_sensitivities, rhs, data_of(start), first, limits)
    elif start.size > MOST_DENSE and method not in IMPLICIT:
        other = partial(by_adjoint, rhs, states, first, limits)
    trajectory = Trajectory(rhs, states, solution.ts, rtol, atol, other)

    def at(times: Any, found: np.ndarray | None = None) -> Any:
        found = None if found is None else np.asarray(rhs.as_real(found))
        return rhs.as_complex(trajectory.at(start, t0, times, tensors, found))

    of_events = [
        _event(rhs, event, tensors, at, times, found)
        for event, times, found in zip(
            functions, known.t_events or (), known.y_events or (), strict=True)]
    times = _output_times(known, t0, t1, t_eval, [t for t, _ in of_events])
    if len(known.t):
        known.t = times if is_tensor(times) else known.t
        known.y = cnp.transpose(at(times, known.y.T))
    known.sol = Solution(solution, at) if dense_output else None
    if functions:
        known.t_events = [t for t, _ in of_events]
        known.y_events = [y for _, y in of_events]
    return known


def _exact_jacobian(rhs: RightHandSide, t: float, y0: np.ndarray, tensors: list) -> Any:
    """Return a function for SciPy's `jac`; None if the right-hand side does not take tensors."""
    def jacobian(t: float, y: np.ndarray) -> np.ndarray:
        with unrecorded():
            return np.asarray(TracedLinearization(
                rhs, np.array([t]), y[None], tensors).jacobian()[0])

    if rhs.is_complex:
        return None
    try:
        jacobian(t, y0)
    except Exception as error:
        require_of_tracing(error)
        return None
    return jacobian


def _event_of_values(rhs: RightHandSide, event: Callable, tensors: list) -> Callable:
    of_values = rhs.of_values(event, tensors)
    for name in ("terminal", "direction"):
        if hasattr(event, name):
            setattr(of_values, name, getattr(event, name))
    return of_values


def _event(
    rhs: RightHandSide, event: Callable, tensors: list, at: Callable, known: np.ndarray,
    states: np.ndarray,
) -> tuple:
    """Return the times of an event, and the states there.

    Two steps of Newton's method, whose values are left out, have their first two derivatives.
    """
    if not len(known) or not anybody_records():
        return known, states
    args = rhs.arguments(tensors)

    def value(t: Any, y: Any) -> Any:
        return cnp.reshape(cnp.asarray(event(t, y, *args)), ())

    times = convert_to_tensor(known)
    for _ in range(2):
        found, corrected = at(times), []
        for i in range(len(known)):
            t, y = identity_op(times[i]), identity_op(found[i])
            velocity = rhs.as_complex(rhs(t, rhs.as_real(y), tensors))
            with ForwardAccumulator([t, y], [cnp.ones(()), velocity]) as accumulator:
                g = value(t, y)
            slope = accumulator.jvp(g, unconnected_gradients="zero")
            corrected.append(t - (g - stop_gradient(g)) / slope)
        times = cnp.stack(corrected)
    return times, at(times, states)


def _output_times(known: Any, t0: Any, t1: Any, t_eval: Any, of_events: Sequence) -> Any:
    if t_eval is not None:
        return t_eval[:len(known.t)]
    last: Any = known.t[-1:]
    if known.status == 0:
        last = t1[None]
    elif known.status == 1:
        last = next(t[-1:] for t, values in zip(of_events, known.t_events, strict=True)
                    if len(values) and values[-1] == known.t[-1])
    return cnp.concatenate([t0[None], known.t[1:-1], last])


class Interpolants:
    """States of a solution at an array of times, one per row."""

    def __init__(self, rhs: RightHandSide, solution: Any) -> None:
        self._rhs, self._solution = rhs, solution
        # SciPy's own method calls one interpolant after the other.
        parts, kinds = solution.interpolants, {type(x).__name__ for x in solution.interpolants}
        self._kind = kinds.pop() if len(kinds) == 1 else None
        # Steps: a terminal event is within the last one.
        self._lengths = np.array([x.t - x.t_old for x in parts])
        self._from = np.array([x.t_old for x in parts])
        if self._kind in ("RkDenseOutput", "RadauDenseOutput"):
            self._starts = np.array([x.y_old for x in parts])
            self._coefficients = np.array([x.Q for x in parts])
            if self._kind == "RkDenseOutput":
                self._coefficients *= self._lengths[:, None, None]
        elif self._kind == "Dop853DenseOutput":
            self._starts = np.array([x.y_old for x in parts])
            self._coefficients = np.array([x.F for x in parts])
        elif self._kind == "LsodaDenseOutput":
            self._from, self._lengths = (
                np.array([getattr(x, name) for x in parts]) for name in ("t", "h"))
            width = max(x.yh.shape[1] for x in parts)
            table = np.zeros((len(parts), len(parts[0].yh), width))
            for row, x in zip(table, parts, strict=True):
                row[:, :x.yh.shape[1]] = x.yh
            self._starts, self._coefficients = table[:, :, 0], table[:, :, 1:]

    def __call__(self, times: np.ndarray) -> np.ndarray:
        """Return the states."""
        if not len(times):
            return np.zeros((0, len(self._rhs.as_real(self._solution(self._solution.t_min)))))
        if not hasattr(self, "_coefficients"):
            return np.asarray(self._rhs.as_real(self._solution(times).T))
        ends = self._solution.ts
        sign = 1 if self._solution.ascending else -1
        place = np.searchsorted(sign * ends, sign * times) - 1
        place = np.minimum(np.maximum(place, 0), len(ends) - 2)
        coefficients = self._coefficients[place]
        x = ((times - self._from[place]) / self._lengths[place])[:, None]
        if self._kind == "Dop853DenseOutput":
            states = np.zeros_like(coefficients[:, 0])
            for i in range(coefficients.shape[1]):
                states = (states + coefficients[:, -1 - i]) * (1 - x if i % 2 else x)
        else:
            powers = x ** np.arange(1.0, coefficients.shape[2] + 1)
            states = (coefficients @ powers[:, :, None])[:, :, 0]
        return np.asarray(self._rhs.as_real(self._starts[place] + states))


class Solution:
    """Solution at any time, as SciPy's `OdeSolution`, of tensors."""

    def __init__(self, solution: Any, at: Callable) -> None:
        self._solution, self._at = solution, at

    def __call__(self, t: Any) -> Any:
        """Return the state, or one state per column."""
        t = cnp.asarray(joined(t), float)
        times = cnp.reshape(t, (-1,))
        known = data_of(convert_to_tensor(times))
        if np.any(known < self.t_min) or np.any(known > self.t_max):
            raise ValueError(
                f"times must be from {self.t_min} to {self.t_max}, got {known.min()} to "
                f"{known.max()}: beyond, the solution has no derivative")
        found = self._at(times)
        return found[0] if t.ndim == 0 else cnp.transpose(found)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._solution, name)
