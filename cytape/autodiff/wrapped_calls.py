"""Calls of functions with users' derivatives: arguments, copies, results, side effects."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import numpy as np

from cytape.autodiff.known import Known
from cytape.core.vspace import VSpace
from cytape.ops.calls.symbolic import in_graph
from cytape.ops.creation import own_tensor
from cytape.ops.engine.custom_op import custom_call
from cytape.tensor import nest
from cytape.tensor.making import convert_to_tensor
from cytape.tensor.recording.state import (
    MOST_DETACHED,
    Origins,
    Recorder,
    TangentRecorder,
    anybody_records,
    current_graph,
    departures,
    is_recorded,
)
from cytape.tensor.tensor import Tensor, another
from cytape.tensor.variable import Variable, note_departure

__all__ = [
    "Arguments",
    "Call",
    "call_with_own",
    "copied",
    "followed",
    "is_plain_tensor",
    "is_tensor",
    "kept",
    "lending",
    "lent",
    "name_of",
    "own_leaf",
    "owned",
    "record",
    "require_positional",
    "value_of",
    "values_at_call",
    "with_tensors",
]


class Arguments:
    """The positional arguments of a call, with the tensors separated from the rest.

    Parameters
    ----------
    args : tuple
    leaves : list
        Of that, or what is to take their places.

    Attributes
    ----------
    args : tuple
    tensors : list of Tensor
    is_tensor : list of bool
        Per leaf.
    """

    def __init__(self, args: tuple, leaves: list) -> None:
        self.is_tensor = list(map(is_tensor, leaves))
        self.tensors = list(filter(is_tensor, leaves))
        self.args = args
        self._leaves = leaves

    def without_tensors(self, copies: bool = False) -> Arguments:
        """Return the arguments without their tensors, for storage where tensors must not be.

        With copies of arrays, later writes do not change them.
        """
        leaves = [None if is_tensor(leaf) else copied(leaf) if copies else leaf
                  for leaf in self._leaves]
        arguments = Arguments(nest.pack_sequence_as(self.args, leaves), leaves)
        arguments.is_tensor = self.is_tensor
        return arguments

    def packed(self, xs: Any, still: Callable[[Any], Any] = lambda leaf: leaf) -> tuple:
        """Return the arguments with the tensors replaced, and optionally the rest."""
        remaining = iter(xs)
        return nest.pack_sequence_as(
            self.args,
            [next(remaining) if moving else still(leaf)
             for moving, leaf in zip(self.is_tensor, self._leaves, strict=True)],
        )


def own_leaf(graph: Any, leaf: Any) -> Any:
    """Return an argument as a tensor of the graph that is being built."""
    if isinstance(leaf, Tensor):
        return in_graph(graph, value_of(leaf))
    return _kept_leaf(leaf)


def kept(structure: Any) -> Any:
    """Return arguments for later use: later writes do not change their arrays and tensors."""
    return nest.map_structure(_kept_leaf, structure)


def _kept_leaf(leaf: Any) -> Any:
    if isinstance(leaf, np.ndarray):
        leaf = leaf.copy(order="K")
        leaf.setflags(write=False)
    return own(leaf)


def lent(structure: Any) -> Any:
    """Return arguments for a function that may change its arrays and tensors in place."""
    return nest.map_structure(lambda leaf: own(copied(leaf)), structure)


def copied(leaf: Any) -> Any:
    """Return a copy of an array; other objects unchanged."""
    return leaf.copy(order="K") if isinstance(leaf, np.ndarray) else leaf


def call_with_own(f: Callable, args: tuple, kwargs: dict) -> Any:
    """Call a function with copies of its arguments, which it may change in place."""
    args, kwargs = lent((args, kwargs))
    return f(*args, **kwargs)


def owned(structure: Any) -> Any:
    """Return arguments for a function that may change its tensors in place."""
    return nest.map_structure(own, structure)


def own(leaf: Any) -> Any:
    """Return a tensor that can be written to independently of the one that is passed."""
    if not is_plain_tensor(leaf):
        return leaf
    if leaf.graph is None:
        graph = current_graph()
        if graph is not None and leaf.id <= graph.first_id:
            return leaf  # not writable here, and the graph must capture the caller's
        return own_tensor(leaf)
    from cytape.ops.updates.in_place import own_in_graph  # here: rarely needed

    return own_in_graph(leaf)


def lending(structure: Any) -> AbstractContextManager[Any]:
    """Return arguments whose arrays only the called function can write to.

    At the end of the block, writes to them are copied to the caller's arrays.
    """
    if any(isinstance(leaf, np.ndarray) for leaf in nest.flatten(structure)):
        return _lending_arrays(structure)
    return nullcontext(owned(structure))


@contextmanager
def _lending_arrays(structure: Any) -> Iterator[Any]:
    loans: dict[int, tuple] = {}  # an array that occurs twice counts once

    def lend(leaf: Any) -> Any:
        if not isinstance(leaf, np.ndarray):
            return own(leaf)
        if id(leaf) not in loans:
            copy = leaf.copy(order="K")
            copy.setflags(write=leaf.flags.writeable)
            loans[id(leaf)] = leaf, copy, leaf.copy(order="K") if leaf.flags.writeable else None
        return loans[id(leaf)][1]

    try:
        yield nest.map_structure(lend, structure)
    finally:
        for array, copy, before in loans.values():
            # Only if it changed, since the caller's array may have been written to by others.
            if before is not None and copy.tobytes() != before.tobytes():
                np.copyto(array, copy)


def followed(values: list) -> bool:
    """Return whether a recorder tracks any of the tensors, or of the variables, which are read."""
    return any(is_recorded(value.id) for value in values)


def value_of(leaf: Any) -> Any:
    """Return the present value of a variable, other objects unchanged."""
    return leaf.value() if isinstance(leaf, Variable) else leaf


def values_at_call(tensors: Iterable[Any]) -> list[Tensor]:
    """Return tensors that keep the arguments' present values; later writes do not change them."""
    return [another(value_of(x)) for x in tensors]


def is_tensor(leaf: Any) -> bool:
    """Return whether x is a tensor or variable."""
    return isinstance(leaf, Tensor)


def is_plain_tensor(leaf: Any) -> bool:
    """Return whether x is a tensor other than a variable."""
    return isinstance(leaf, Tensor) and not isinstance(leaf, Variable)


def with_tensors(structure: Any, tensors: Sequence[Any]) -> Any:
    """Return a structure with other tensors in place of its own; variables do not count."""
    remaining = iter(tensors)
    return nest.map_structure(
        lambda leaf: next(remaining) if is_plain_tensor(leaf) else leaf, structure)


def name_of(f: Callable) -> str:
    """Return the name of a function for messages."""
    return getattr(f, "__name__", type(f).__name__)


def require_positional(f: Callable, kwargs: dict) -> None:
    """Raise for tensors that are passed by keyword."""
    if kwargs and any(map(is_tensor, nest.flatten(kwargs))):
        raise TypeError(
            f"{name_of(f)} has a custom derivative, which covers positional arguments only: "
            "pass tensors and variables by position"
        )


class Call:
    """A call of a function with a user's derivative, and the side effects of the call.

    Attributes
    ----------
    returned : object
    variables : list of Variable
        Trainable variables that the function read, in the order of their creation.
    known : Known or None
        What `f` could reach before a value became a plain array or number. None if no value did.
    """

    def __init__(self, f: Callable, args: tuple, kwargs: dict) -> None:
        watcher, graph = Recorder(False, True), current_graph()
        self._origins: Origins | None = None
        following: AbstractContextManager = nullcontext()
        if graph is not None or anybody_records():
            self._origins = Origins(
                arguments=filter(is_tensor, nest.flatten(args)), graph=graph)
            following = TangentRecorder(VSpace(), reads=self._origins)
        self.known: Known | None = None
        self._left: list[tuple[Tensor, str]] = []  # of arguments, covered by the rule

        def look() -> None:
            self.known = Known(f, args, kwargs)

        with watcher, following, departures(at_first=look, covers=self._covers):
            self.returned = f(*args, **kwargs)
        if self._left and self.known is not None and self.known.is_new_in(f, args, kwargs):
            for tensor, how in self._left:  # their values are used outside of the result, too
                note_departure(tensor, how)
        self.variables = sorted(watcher.variables, key=lambda variable: variable.id)

    def _covers(self, tensor: Tensor, how: str) -> bool:
        """Return whether a tensor depends only on arguments, which the rule covers."""
        if self._origins is None or self._origins.of(tensor):
            return False
        if len(self._left) < MOST_DETACHED:
            self._left.append((tensor, how))
        return True

    def captured_by(self, leaf: Any) -> list[Tensor]:
        """Return the tensors, arguments excepted, that a leaf of the result depends on."""
        return [] if self._origins is None or not is_tensor(leaf) else self._origins.of(leaf)


def record(
    name: str, result: Any, inputs: list, backward: Callable, jvp: Callable | None = None,
    optional: bool = False,
) -> Any:
    """Return the result as new tensors, recorded as outputs of one op with the given rules.

    The other parameters are those of `custom_call`.
    """
    leaves = nest.flatten(result)
    if not inputs and not any(map(is_tensor, leaves)):
        return result
    outputs = custom_call(
        name, list(map(convert_to_tensor, leaves)), inputs, backward, jvp, optional)
    return nest.pack_sequence_as(result, outputs)
