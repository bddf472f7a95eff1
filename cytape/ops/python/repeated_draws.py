"""Repetition of random draws: a recomputed call gets the numbers of the first call."""

from __future__ import annotations

import dis
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from functools import partial
from types import CodeType
from typing import Any

import numpy as np

from cytape.ops.python.bound_names import codes
from cytape.ops.python.draws import (
    Stream,
    default_generator,
    drawing_functions,
    note,
    watchers,
)
from cytape.ops.python.reachable import (
    Reachable,
    is_of_cytape,
    numpy_global,
    python_global,
    state_of,
)
from cytape.tensor.recording.entered_blocks import between

__all__ = ["Streams", "continuing", "moved", "repeating", "restorer", "saved_draws"]

State = tuple[Any, Callable[[], None]]  # a generator and a function that restores its state


class Streams:
    """The random streams that a function may draw from.

    They are cytape's default generator, and generators found without running the function: in its
    closure, arguments, and by the names that it and the functions it calls use. The streams of
    traces and other graphs are found when they are drawn from.

    Parameters
    ----------
    f : callable
    arguments : tuple, optional
        What it is going to be called with.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> streams = Streams(rng.normal)
    >>> before = streams.states()
    >>> first = rng.normal()
    >>> with repeating(moved(before)):
    ...     second = rng.normal()
    >>> first == second
    True
    """

    def __init__(self, f: Callable, arguments: tuple = ()) -> None:
        reachable = Reachable(f, arguments)
        named = any("random" in name for name in reachable.names) or any(
            id(function) in reachable.seen for function in drawing_functions.values())
        self.generators = [default_generator(), *(
            x for x in reachable.generators.values()
            # The modules' generators are slow to save: only if the function seems to use them.
            if named or x not in (numpy_global, python_global) or id(x) in reachable.seen)]
        self._of_graphs: dict[int, State] = {}  # by id, states when they were found

    def states(self) -> list[tuple[Any, Callable[[], None], tuple]]:
        """Return the states of the streams that are known without a run."""
        return [(x, restorer(x), state_of(x)) for x in self.generators]

    @property
    def of_graphs(self) -> list[State]:
        """The states of the streams of graphs before they were drawn from."""
        return list(self._of_graphs.values())

    def finding(self) -> AbstractContextManager[None]:
        """Find the streams of graphs that this thread draws from in a block."""
        known = set(map(id, self.generators))

        def found(stream: Any) -> None:
            if id(stream) not in self._of_graphs and id(stream) not in known:
                self._of_graphs[id(stream)] = stream, restorer(stream)

        return between([partial(setattr, watchers, "notes", (*watchers.notes, found))],
                       [partial(setattr, watchers, "notes", watchers.notes)])

    def saved(self) -> Callable[[], None]:
        """Return a function that restores the present states of all streams.

        Streams of graphs that are found later are restored to their states when found.
        """
        present = {id(x): restorer(x)
                   for x in (*self.generators, *(x for x, _ in self.of_graphs))}

        def restore() -> None:
            for x, begin in self.of_graphs:
                if id(x) not in present:
                    begin()
            for go_on in present.values():
                go_on()

        return restore


def moved(states: Sequence[tuple[Any, Callable[[], None], tuple]]) -> list[State]:
    """Return the states that differ from the present states of their streams."""
    return [(x, restore) for x, restore, state in states if state_of(x) != state]


def repeating(states: Sequence[State]) -> AbstractContextManager[None]:
    """Set streams back to some states in a block; afterwards restore the present states."""
    return between([restore for _, restore in states], _restorers([x for x, _ in states]))


def continuing(generators: Sequence[Any]) -> AbstractContextManager[None]:
    """Restore the states of streams after a block."""
    return between((), _restorers(generators))


def _restorers(generators: Sequence[Any]) -> list[Callable[[], None]]:
    for x in generators:
        if hasattr(x, "restorer") or x is numpy_global:
            note(x)  # its state before it is set back
    return [restorer(x) for x in generators]


def saved_draws(function: Callable, arguments: tuple) -> Callable[[], None]:
    """Save the states of the random streams that a call may draw from.

    Parameters
    ----------
    function : callable
    arguments : tuple
        Its inputs, besides the objects that it refers to by name.

    Returns
    -------
    callable
        Restores the streams that have moved. It would also repeat draws of other threads, so global
        streams are restored only if the function refers to them by name.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> restore = saved_draws(rng.normal, ())
    >>> first = rng.normal()
    >>> restore()
    >>> rng.normal() == first
    True
    """
    reachable = Reachable(function, arguments)
    streams = {**reachable.generators, id(python_global): python_global}
    saved = [(x, state_of(x), restorer(x)) for x in streams.values()]

    def restore() -> None:
        # Another thread drew from a module's stream that the call does not use.
        for generator, before, restored in saved:
            if state_of(generator) != before and _may_draw_from(reachable, generator):
                restored()

    return restore


def _may_draw_from(reachable: Reachable, generator: Any) -> bool:
    """Return whether a function refers to a generator or to the module that owns it."""
    if generator not in (numpy_global, python_global) or id(generator) in reachable.seen:
        return True
    imported = {name for function, _ in reachable.functions if not is_of_cytape(function)
                for name in imported_in(function.__code__)}
    if generator is python_global:
        return id(random) in reachable.seen or "random" in imported
    return id(np.random) in reachable.seen or "numpy.random" in imported or (
        "random" in reachable.names and (id(np) in reachable.seen or "numpy" in imported))


def imported_in(code: CodeType) -> Iterator[str]:
    """List the modules that a function, or a function it defines, imports."""
    for inner in codes(code):
        for instruction in dis.get_instructions(inner):
            if instruction.opname == "IMPORT_NAME":
                yield instruction.argval


def restorer(
    generator: Stream | np.random.Generator | np.random.RandomState | random.Random,
) -> Callable[[], None]:
    """Return a function that restores the present state of a generator, or of an optimizer."""
    if hasattr(generator, "restorer"):
        return generator.restorer()
    if isinstance(generator, random.Random):
        try:
            state = generator.getstate()
        except NotImplementedError:  # the system's generator has no state
            return lambda: None
        return lambda: generator.setstate(state)
    if isinstance(generator, np.random.RandomState):
        legacy = generator.get_state(legacy=False)
        return lambda: generator.set_state(legacy)
    source = generator.bit_generator
    of_source = source.state
    return lambda: setattr(source, "state", of_source)
