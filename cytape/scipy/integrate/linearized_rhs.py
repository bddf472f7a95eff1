"""Right-hand sides of differential equations, and their derivatives at many times at once.

A state is a vector of real numbers here: a complex one is its real part and its imaginary part.
"""

import copy
from collections.abc import Callable, Sequence
from functools import cached_property, partial
from typing import Any

import numpy as np

import cytape.numpy as cnp
from cytape.autodiff.custom.bound_rule import bound, restored
from cytape.autodiff.forward_accumulator import ForwardAccumulator, how_detached
from cytape.autodiff.gradient_tape import GradientTape, noting_detached
from cytape.autodiff.wrapped_calls import copied
from cytape.errors import DetachedError
from cytape.graph.batching.branch_paths import (
    along,
    conditions,
    groups_of,
    manner_of,
    note_manner,
)
from cytape.graph.batching.vmap import vmap
from cytape.graph.tracing.kept_traces import identity_of, kept, require_of_tracing
from cytape.ops.calls.operands import is_tensor
from cytape.ops.calls.symbolic import graph_for
from cytape.ops.creation import identity_op
from cytape.ops.python.python_ops import LEAVES_CYTAPE
from cytape.scipy.integrate.graph_calls import reads_others
from cytape.tensor import convert_to_tensor, nest
from cytape.tensor.recording.state import how_left
from cytape.tensor.tensor import data_of


class RightHandSide:
    """User's function `func(t, y, *args)`, with the tensors among the leaves of `args` separate.

    Derivatives, which may be taken later, call the function with its closure, its globals and the
    arrays in `args` as they are now.

    Parameters
    ----------
    name : str
    func : callable
    args : tuple
    is_complex : bool
    state_first : bool, optional
        Whether users' functions take the state before the time.

    Attributes
    ----------
    function : callable
    tensors : list of Tensor
        Of `args`.
    """

    def __init__(
        self, name: str, func: Callable, args: tuple, is_complex: bool, state_first: bool = False,
    ) -> None:
        self.name, self.is_complex, self._state_first = name, is_complex, state_first
        self.function, self._args = bound(f"the function of {name}", func), args
        self._given = leaves = nest.flatten(args)
        self._moving = [i for i, leaf in enumerate(leaves) if is_tensor(leaf)]
        self.tensors = [convert_to_tensor(leaves[i]) for i in self._moving]
        self._leaves = [None if is_tensor(leaf) else copied(leaf) for leaf in leaves]
        self._groups: Any = None  # paths, the rows of each, and the places of all rows in these
        self._manner = "together"  # of computing many states

    @cached_property
    def without_tensors(self) -> "RightHandSide":
        """The same function, for traces, which must not keep the tensors."""
        other = copy.copy(self)
        other.tensors, other._args, other.identity = [], self._args_alone, self.identity
        return other

    @property
    def _args_alone(self) -> tuple:
        return nest.pack_sequence_as(self._args, self._leaves)

    @property
    def restored(self) -> "RightHandSide":
        """The same with the plain function, for many calls: each is compared with the call else."""
        other = copy.copy(self)
        other.function = restored(self.function)
        return other

    @cached_property
    def identity(self) -> Any:
        """Of the function and the arrays that it reads, None if unknown."""
        trainable = [x.spec.trainable for x in self.tensors]
        return identity_of(
            restored(self.function), self._args_alone, self._moving, trainable,
            self.is_complex, self._state_first)

    def kept(self, plain: Callable, shapes: Sequence[tuple], *args: Any) -> Callable:
        """Return `plain(rhs, *args, *arrays)` as a function of arrays, which may be traced.

        `shapes` are those of a state and of the tensors.
        """
        return kept(
            partial(plain, self.without_tensors, *args), self.identity, [*shapes, *args])

    def call(
        self, function: Callable, times: np.ndarray, states: np.ndarray, tensors: list,
        *arrays: Any,
    ) -> Any:
        """Call a function of the right-hand side and these arrays, which may be traced."""
        shapes = [states.shape[1:], *[x.shape for x in tensors]]
        is_split = manner_of(self.identity) == "groups"
        groups = self._groups_of(times, states, tensors) if is_split else None
        given = times, states, tensors, *arrays
        if groups is not None:
            paths, *places = groups
            try:
                return self.kept(_in_groups, shapes, function, paths)(*places, *given)
            except Exception as error:
                require_of_tracing(error)
                self._note("one by one")
        return self.kept(function, shapes)(*given)

    def _groups_of(self, times: np.ndarray, states: np.ndarray, tensors: list) -> Any:
        """Return rows that take the same branches, as `_groups`; None if there are many groups."""
        shapes = [states.shape[1:], *[x.shape for x in tensors]]
        groups = None
        try:
            groups = groups_of(lambda path, rows: self.kept(_conditions, shapes, path)(
                times[rows], states[rows], tensors), len(times))
        except Exception as error:
            require_of_tracing(error)
        if groups is None:
            self._note("one by one")
            return None
        paths, rows = zip(*groups, strict=True)
        return paths, list(rows), np.argsort(np.concatenate(rows))

    def _note(self, manner: str) -> None:
        self._manner = manner
        note_manner(self.identity, manner)

    def in_groups(self, *groups: Any) -> "RightHandSide":
        """Return the function for rows whose branches are known: paths, rows and places."""
        other = copy.copy(self)
        other._groups = groups
        return other

    def arguments(self, tensors: list, leaves: list | None = None) -> tuple:
        """Return `args` with given values in place of the tensors."""
        leaves = list(self._leaves if leaves is None else leaves)
        for i, leaf in zip(self._moving, tensors, strict=True):
            leaves[i] = leaf
        return nest.pack_sequence_as(self._args, leaves)

    def of_values(self, function: Callable, tensors: list, is_later: bool = False) -> Callable:
        """Return a user's function as one of arrays, without `args`, for SciPy."""
        args = self.arguments(
            [data_of(x)[()] for x in tensors], self._leaves if is_later else self._given)
        name = self.name

        def called(t: Any, y: Any) -> Any:
            try:
                return np.asarray(function(t, y, *args))
            except LEAVES_CYTAPE as error:
                raise reads_others(name, error) from None  # its advice is wrong here

        return called

    def as_complex(self, state: Any) -> Any:
        """Return a state as the user's function takes it."""
        if not self.is_complex:
            return state
        n = state.shape[-1] // 2
        return state[..., :n] + 1j * state[..., n:]

    def as_real(self, state: Any) -> Any:
        """Return a state as a vector of real numbers."""
        if not self.is_complex:
            return state
        return cnp.concatenate([cnp.real(state), cnp.imag(state)], -1)

    def __call__(self, t: Any, state: Any, tensors: list) -> Any:
        """Return a copy of the derivative of one state: the function may refill one buffer."""
        y = self.as_complex(state)
        t, y = (y, t) if self._state_first else (t, y)
        value = cnp.array(self.function(t, y, *self.arguments(tensors)))
        return self.as_real(value if value.ndim == 1 else cnp.ravel(value))  # as SciPy

    def at(self, times: Any, states: Any, tensors: list) -> Any:
        """Return the derivatives of many states, one per row."""
        if self._groups is not None:
            paths, rows, places = self._groups
            return cnp.concatenate([
                vmap(lambda t, y, path=path: along(path, self, t, y, tensors))(times[i], states[i])
                for path, i in zip(paths, rows, strict=True)])[places]
        manner = self._manner if self.identity is None else manner_of(self.identity)
        if manner == "together" and times.shape[0] != 1:
            try:
                return vmap(lambda t, y: self(t, y, tensors))(times, states)
            except Exception as error:
                require_of_tracing(error)
                self._note(manner := "groups")
        given = [times, states, *tensors]
        if manner == "groups" and graph_for(given) is None:
            known = [data_of(convert_to_tensor(x)) for x in given]
            groups = self._groups_of(known[0], known[1], known[2:])
            try:
                if groups is not None:
                    return self.in_groups(*groups).at(times, states, tensors)
            except Exception as error:
                require_of_tracing(error)
                self._note("one by one")
        each = times.tolist() if isinstance(times, np.ndarray) else times
        return cnp.stack([self(t, states[i], tensors) for i, t in enumerate(each)])


def _conditions(rhs, path, times, states, tensors):
    tensors = list(map(convert_to_tensor, tensors))  # as for derivatives
    return conditions(path, lambda t, y: rhs(t, y, tensors), times, states)


def _in_groups(rhs, function, paths, rows, places, *args):
    return function(rhs.in_groups(paths, rows, places), *args)


class Linearization:
    """Derivatives of a right-hand side at the rows of `states`."""

    def __init__(self, rhs: RightHandSide, times: np.ndarray, states: Any, tensors: list) -> None:
        self._rhs, self._times = rhs, times
        self._states = identity_op(convert_to_tensor(states))
        self._tensors = [identity_op(convert_to_tensor(x)) for x in tensors]
        self._moving = [x for x in self._tensors if x.spec.trainable]
        self._tape = GradientTape(persistent=True, watch_accessed_variables=False)
        with self._tape as tape:
            tape.watch([self._states, *self._moving])
            self._detached = noting_detached(tape)
            self.values = cnp.asarray(rhs.at(times, self._states, self._tensors))
        found, expected = self.values.shape[1:], self._states.shape[1:]
        if is_tensor(self.values) and found != expected and None not in (*found, *expected):
            raise ValueError(f"{rhs.name}: a function returned shape {found} for a state of shape "
                             f"{expected}")

    def _gradient(self, sources: list, seeds: Any) -> list:
        found: list = [None] * len(sources)
        if is_tensor(self.values):
            found = self._tape.gradient(self.values, sources, [convert_to_tensor(seeds)])
        if self._detached and any(x is None for x in found):
            raise self._lost(how_left(self._detached))
        return [cnp.zeros(x.shape, x.dtype) if g is None else g
                for x, g in zip(sources, found, strict=True)]

    def _lost(self, how: str) -> DetachedError:
        return DetachedError(
            f"{self._rhs.name}: the derivative of a function was lost: a value left its tensor by "
            f"{how}. Compute with the tensors themselves")

    def jacobian(self) -> Any:
        """Return the Jacobians in the state, one per row."""
        rows, zeros = np.eye(self._states.shape[1]), cnp.zeros_like(self._states)
        return cnp.stack([self._gradient([self._states], zeros + row)[0] for row in rows], 1)

    def vjp(self, seeds: Any) -> list:
        """Return the gradients in the tensors, given one seed per row; None for integers."""
        return self.with_integers(self._gradient(self._moving, seeds))

    def vjp_with_states(self, seeds: Any) -> list:
        """Return the gradients in the states, then those in the tensors except for integers."""
        return self._gradient([self._states, *self._moving], seeds)

    def with_integers(self, gradients: list) -> list:
        """Return gradients of all tensors, None for integers."""
        found = iter(gradients)
        return [next(found) if x.spec.trainable else None for x in self._tensors]

    def jvp(self, tangents: list) -> Any:
        """Return the tangents of the values, given those of the tensors, None where zero."""
        pairs = [(x, t) for x, t in zip(self._tensors, tangents, strict=True)
                 if t is not None and x.spec.trainable]
        if not pairs:
            return np.zeros(self._states.shape)
        with ForwardAccumulator([x for x, _ in pairs], [t for _, t in pairs]) as accumulator:
            values = cnp.asarray(self._rhs.at(self._times, self._states, self._tensors))
        found = accumulator.jvp(values) if is_tensor(values) else None
        if found is None and (how := how_detached(accumulator)):
            raise self._lost(how)
        return np.zeros(self._states.shape) if found is None else found


class TracedLinearization:
    """The same with arrays, by traces where these are kept."""

    def __init__(
        self, rhs: RightHandSide, times: np.ndarray, states: np.ndarray, tensors: list,
    ) -> None:
        self._rhs = rhs
        self._at = times, states, [data_of(x) for x in tensors]

    def call(self, function: Callable, *arrays: Any) -> Any:
        """Call a function of the right-hand side, times, states, tensors and further arrays."""
        return self._rhs.call(function, *self._at, *arrays)

    def jacobian(self) -> Any:
        """Return the Jacobians in the state, one per row."""
        return self.call(_jacobian)

    def vjp(self, seeds: Any) -> list:
        """Return the gradients in the tensors, given one seed per row; None for integers."""
        return self.call(_vjp, seeds)

    def jvp(self, tangents: list) -> Any:
        """Return the tangents of the values, given those of the tensors, None where zero."""
        return self.call(_jvp, [None if x is None else data_of(x) for x in tangents])


def _jacobian(rhs, times, states, tensors):
    return Linearization(rhs, times, states, tensors).jacobian()


def _vjp(rhs, times, states, tensors, seeds):
    return Linearization(rhs, times, states, tensors).vjp(seeds)


def _jvp(rhs, times, states, tensors, tangents):
    return Linearization(rhs, times, states, tensors).jvp(tangents)
