"""Loops over steps whose gradient stores few states and recomputes the others.

a. All steps but the last are one op on the tape. In the first pass `core.schedules` chooses the
   states to store; the last step is recorded like any other call.
b. The op's backward pass takes one step after the other, each from its own state, which is
   recomputed from the nearest stored state. So every step is recorded once, and `fewest_advances`
   steps run unrecorded.
c. If a recorder tracks the gradient, or the steps have tangents, all states are kept.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from operator import index
from typing import Any

import numpy as np

from cytape.autodiff.recompute import recompute_grad, tensors_in
from cytape.autodiff.repeatable_call import FirstRun, repeated_gradients, repeated_tangents
from cytape.autodiff.seeds import densify
from cytape.autodiff.wrapped_calls import (
    followed,
    is_tensor,
    kept,
    lent,
    name_of,
    owned,
    record,
    value_of,
    with_tensors,
)
from cytape.core.schedules import Action, Kind, reversal, sweep
from cytape.errors import TapeStateError
from cytape.ops.calls.symbolic import graph_for
from cytape.ops.python.progress_reports import Progress, progress_of
from cytape.tensor import nest
from cytape.tensor.making import convert_to_tensor
from cytape.tensor.recording.state import current_graph, possible_modes, stop_recording
from cytape.tensor.structures import leaves_of_operand
from cytape.tensor.tensor import Tensor, data_of

__all__ = ["checkpointed_scan"]


def checkpointed_scan(
    step: Callable[[Any], Any],
    state: Any,
    n: int,
    snapshots: int,
    *,
    storage: str | os.PathLike[str] | None = None,
    progress: Callable[[int, int | None], Any] | bool | None = None,
) -> Any:
    """Apply a step many times, and store few of the states for the gradient.

    The others are recomputed by the schedule of Griewank and Walther, which takes the fewest steps:
    of 10,000 steps with 100 snapshots, each is recomputed two and a half times on average.

    Parameters
    ----------
    step : callable
        Called with a state; returns the next one, of the same structure. It must return the same
        values when it is called again with the same state, as for `recompute_grad`.
    state : array_like, Tensor or structure of them
        The first state. Other inputs of a step, such as its number, can be part of the state.
    n : int
        How many steps to take.
    snapshots : int
        How many states to keep at a time, the first one included.
    storage : path, optional
        An existing directory in which to keep the snapshots but for the first, as .npy files in a
        directory of their own. They are removed when they have been used, or when no gradient can
        be asked for any more.
    progress : callable or bool, optional
        Called with the number of steps that are done and of all, at most ten times a second and at
        the end; in the gradient again, from 0. True: a bar, by tqdm if that is installed.

    Returns
    -------
    Tensor, ndarray or structure of them
        The last state.

    Raises
    ------
    TypeError
        If `n` or `snapshots` is no integer.
    ValueError
        If `n` is negative or `snapshots` less than 1; if `storage` is given in a graph.
    FileNotFoundError
        If `storage` is no directory.
    TapeStateError
        If a step assigns to a variable: make the changing value a part of the state.

    See Also
    --------
    recompute_grad : A single function that computes its gradient from scratch.
    while_loop : Its argument `checkpoints` does the same; a traced function gets such a loop.

    Notes
    -----
    Gradients reach the first state, the variables that `step` reads and tensors that it finds
    elsewhere. Random numbers are the same when a step is taken again, as `recompute_grad` says.
    Forward mode keeps no states; if a gradient is differentiated itself, all are kept. The
    snapshots serve one gradient: a second one repeats the steps to restore them.

    Examples
    --------
    A pendulum's angle after 1,000 steps, and its derivative in the angle at the start:

    >>> import cytape
    >>> import cytape.numpy as np
    >>> def step(state):
    ...     angle, speed = state
    ...     speed = speed - 0.01 * np.sin(angle)
    ...     return angle + 0.01 * speed, speed
    >>> def last_angle(angle):
    ...     return cytape.checkpointed_scan(step, (angle, 0.0), 1000, 10)[0]
    >>> angle, slope = cytape.value_and_grad(last_angle)(0.5)
    >>> round(float(angle), 4), round(float(slope), 4)
    (-0.4561, -1.0412)
    """
    for name, number in {"n": n, "snapshots": snapshots}.items():
        if not hasattr(number, "__index__"):
            raise TypeError(f"{name} must be an integer, got {number!r}")
    n, snapshots = index(n), index(snapshots)
    if n < 0:
        raise ValueError(f"the number of steps must not be negative, got n={n}")
    if snapshots < 1:
        raise ValueError("at least one state must be kept, the first one: got "
                         f"snapshots={snapshots}")
    if storage is not None and not os.path.isdir(storage):
        raise FileNotFoundError(f"storage must be an existing directory, got {str(storage)!r}")
    if graph_for(leaves_of_operand(state)) is not None or current_graph() is not None:
        if storage is not None:
            raise ValueError("storage needs eager steps: a graph or traced function does not write "
                             "snapshots to files")
        from cytape.graph.control.control_flow import scanned

        return scanned(step, state, n, snapshots, progress)
    reports = progress_of(progress, n)
    backward, _ = possible_modes()
    if not backward or n < 2:
        return _advanced(step, lent(state), n, reports)
    state = nest.map_structure(value_of, state)
    return _advanced(step, _Scan(step, n, snapshots, storage, reports).run(state), 1, reports)


def _advanced(
    step: Callable[[Any], Any], state: Any, n: int, reports: Progress | None = None
) -> Any:
    for _ in range(n):
        state = step(owned(state))
        if reports is not None:
            reports.step()
    return state


class _Scan:
    """All steps of a scan but the last, as one op.

    Parameters
    ----------
    step : callable
    n : int
        At least 2.
    n_snapshots : int
    storage : path or None
    reports : Progress or None
    """

    def __init__(
        self, step: Callable[[Any], Any], n: int, n_snapshots: int, storage: Any,
        reports: Progress | None,
    ) -> None:
        self.reports = reports
        self.step, self.n, self.n_snapshots = step, n, n_snapshots
        self.stored = sweep(n, n_snapshots)
        self.storage = storage

    def run(self, state: Any) -> Any:
        """Take the steps, and return the state before the last one."""
        arguments = list(filter(is_tensor, nest.flatten(state)))
        self.start = kept(state)
        from cytape.ops.python.bound_names import Bindings
        from cytape.ops.python.repeated_draws import Streams  # numpy.random is slow to import

        self.streams = Streams(self.step, (state,))
        self.bindings = Bindings(self.step)
        with self.streams.finding():
            # Not a method: the call and this object would refer to each other.
            first_run = FirstRun(
                partial(_sweep, self.step, self.stored, self.streams, self.storage,
                        reports=self.reports),
                (self.start, self.n - 1), {})
        self.first_run = first_run
        assigned = first_run.assigned_since()
        if assigned is not None:
            raise TapeStateError(
                f"a step of checkpointed_scan assigned to {assigned!r}, but steps run more than "
                "once: make this value a part of the state")
        self.elsewhere = [*first_run.variables, *first_run.tensors]
        result, self.snapshots = first_run.take_result()  # taken by the first gradient
        outputs = record(name_of(self.step), tensors_in(result), arguments + self.elsewhere,
                         self.backward, self.jvp, optional=True)
        return with_tensors(result, outputs)

    def backward(self, *gradients: Tensor | None) -> list:
        """Return the gradients of the first state, and of captured tensors and variables."""
        arguments = tensors_in(self.start)
        arrived = [gradient for gradient in gradients if gradient is not None]
        if followed([*arguments, *self.elsewhere, *arrived]):  # by differentiable ops
            return repeated_gradients(
                partial(self.all_steps, recompute_grad), arguments, self.elsewhere, gradients)
        with stop_recording():
            return self.again(partial(self.reversed_steps, gradients))

    def reversed_steps(self, gradients: Sequence[Tensor | None]) -> list:
        """Run the backward pass through all steps; return gradients as `backward`."""
        snapshots = vars(self).pop("snapshots", None)  # atomically, because of other threads
        if snapshots is None:
            _, snapshots = _sweep(
                self.step, self.stored, self.streams, self.storage, lent(self.start),
                self.stored[-1])
        total: list[Any] = [None] * len(self.elsewhere)
        of_state: list[Any] = list(gradients)
        state: Any = None
        if self.reports is not None:
            self.reports.begin(1)  # the last step was not part of this
        for kind, i, stop in self.actions():
            if kind is Kind.RESTORE:
                state = snapshots.restore(i)
            elif kind is Kind.ADVANCE:
                state = _advanced(self.step, state, stop - i)
            elif kind is Kind.STORE:
                snapshots.store(i, state)
            elif kind is Kind.FREE:
                snapshots.free(i)
            else:
                of_state, terms = self.reversed_step(state, of_state)
                state = None
                if self.reports is not None:
                    self.reports.step()
                for k, term in enumerate(terms):
                    if term is not None:
                        total[k] = term if total[k] is None else total[k] + term
        return of_state + total

    def again(self, call: Callable[[], Any]) -> Any:
        """Call a function while steps read the captured objects as in the first pass."""
        def with_step(_: Callable) -> Any:
            self.step = self.bindings.function()
            return call()

        return self.first_run.again(with_step)

    def actions(self) -> Iterator[Action]:
        """Return the actions of the schedule after the last step has been reversed."""
        actions = reversal(self.stored, self.n, self.n_snapshots)
        for action in actions:
            if action.kind is Kind.REVERSE:
                break
        return actions

    def reversed_step(self, state: Any, gradients: Sequence[Any]) -> tuple[list, list]:
        """Reverse a step; return gradients of its state and of captured tensors."""
        arguments = tensors_in(state)
        found = [densify(gradient) for gradient in repeated_gradients(
            lambda *tensors: tensors_in(_advanced(self.step, with_tensors(state, tensors), 1)),
            arguments, self.elsewhere, gradients)]
        return found[: len(arguments)], found[len(arguments) :]

    def jvp(self, *tangents: Tensor | None) -> list:
        """Return the tangents of the last state; all steps run again."""
        return repeated_tangents(
            partial(self.all_steps, lambda step: step), tensors_in(self.start), self.elsewhere,
            tangents)

    def all_steps(self, changed: Callable[[Callable], Callable], *tensors: Tensor) -> list:
        return self.again(lambda: tensors_in(_advanced(
            changed(self.step), lent(with_tensors(self.start, tensors)), self.n - 1)))


def _sweep(
    step: Callable, stored: Sequence[int], streams: Any, storage: Any, state: Any, stop: int,
    reports: Progress | None = None,
) -> tuple[Any, _Snapshots]:
    """Advance from the first state; return the last one and the stored ones."""
    snapshots = _Snapshots(streams, storage)
    to_store = set(stored)
    for i in range(stop):
        if i in to_store:
            snapshots.store(i, state)
        state = _advanced(step, state, 1, reports)
    if stop in to_store:
        snapshots.store(stop, state)
    return state, snapshots


class _Snapshots:
    """States by number, with the states of random streams; all but the first may be in files.

    Parameters
    ----------
    streams : repeated_draws.Streams
    storage : path or None
        None: not in files.
    """

    def __init__(self, streams: Any, storage: str | os.PathLike[str] | None) -> None:
        self.streams = streams
        self.states: dict[int, tuple[Any, Callable[[], None]]] = {}
        self.folder: str | None = None
        if storage is not None:
            import shutil  # seldom needed, slow to import
            import tempfile

            self.folder = tempfile.mkdtemp(prefix="snapshots_", dir=storage)
            self._remove = weakref.finalize(
                self, shutil.rmtree, self.folder, ignore_errors=True)

    def store(self, i: int, state: Any) -> None:
        """Keep a state."""
        state = kept(state)
        if self.folder is not None and i > 0:
            state = with_tensors(state, [
                _InFile(os.path.join(self.folder, f"state_{i}_{k}.npy"), x)
                for k, x in enumerate(tensors_in(state))])
        self.states[i] = state, self.streams.saved()

    def restore(self, i: int) -> Any:
        """Return a state, and restore the random streams at it."""
        state, restore = self.states[i]
        restore()
        return nest.map_structure(
            lambda leaf: leaf.tensor() if isinstance(leaf, _InFile) else leaf, lent(state))

    def free(self, i: int) -> None:
        """Drop a state."""
        state, _ = self.states.pop(i)
        for leaf in nest.flatten(state):
            if isinstance(leaf, _InFile):
                os.unlink(leaf.path)
        if not self.states and self.folder is not None:
            self._remove()


class _InFile:
    """A tensor of a state, in a file."""

    def __init__(self, path: str, x: Tensor) -> None:
        self.path = path
        np.save(path, data_of(x))

    def tensor(self) -> Tensor:
        return convert_to_tensor(np.load(self.path))
