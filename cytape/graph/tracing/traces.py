"""The traces of a function: those used last, as many as there is room for, by what they are for."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

from cytape.graph.tracing.concrete_function import ConcreteFunction

__all__ = ["CacheInfo", "Traces"]

MOST_ALIASES = 64  # keys of one trace, of different extents that it serves


class CacheInfo(NamedTuple):
    """What a traced function keeps; `Function.cache_info` returns it.

    Attributes
    ----------
    traces : int
    plans : int
        What traces and their derivatives were compiled to, one for every combination of shapes.
    nbytes : int
        Of constants, instructions and the memory that plans work in.
    max_traces, max_bytes : int or None
        Traces are given up, those used least recently first, when there are more. None: never.
    """

    traces: int
    plans: int
    nbytes: int
    max_traces: int | None
    max_bytes: int | None


class _Entry:
    """The keys of a trace, references to the objects that these know by their ids, and its size."""

    __slots__ = ("keys", "nbytes", "references")

    def __init__(self, keys: list[tuple], references: list[Any]) -> None:
        self.keys = keys
        self.references = references
        self.nbytes = 0  # when there was made room for it last


class Traces:
    """Traces by key, without those that are not used any more.

    A trace goes when an object dies that its key knows by its id, and when there are too many.

    Parameters
    ----------
    max_traces, max_bytes : int or None
        How much is kept; None: all.

    Attributes
    ----------
    by_key : dict of tuple to ConcreteFunction
        Several keys may have the same trace.
    """

    def __init__(self, max_traces: int | None, max_bytes: int | None) -> None:
        self.by_key: dict[tuple, ConcreteFunction] = {}
        self._entries: dict[ConcreteFunction, _Entry] = {}
        self._reference = weakref.ref(self)
        self._max_traces = max_traces
        self._max_bytes = max_bytes

    def __len__(self) -> int:
        return len(self._entries)

    def add(self, key: tuple, trace: ConcreteFunction, objects: Sequence[Any]) -> None:
        """Keep a trace for as long as the objects live, in the place of what has the key."""
        self._remove(key)
        there = weakref.ref(trace)
        references = []
        if objects:
            forget = partial(_forget, self._reference, there)
            references = [_reference(x, forget) for x in objects]
        self._entries[trace] = _Entry([key], references)
        self.by_key[key] = trace
        if self._max_traces is not None:
            while len(self._entries) > self._max_traces:
                self.discard(self._oldest(trace))
        if self._max_bytes is not None:
            trace.report_plans(partial(_make_room, self._reference, there))

    def add_alias(
        self, key: tuple, trace: ConcreteFunction, objects: Sequence[Any] = ()
    ) -> None:
        """Find a trace under one more key, while the objects live that only this knows."""
        entry = self._entries.get(trace)
        if entry is None:  # it went in the meantime
            return
        self._remove(key)
        entry.keys.append(key)
        forget = partial(_forget_key, self._reference, key)
        entry.references += [_reference(x, forget) for x in objects]
        self.by_key[key] = trace
        if len(entry.keys) > MOST_ALIASES:
            self.by_key.pop(entry.keys.pop(1), None)  # the first is what it was traced for

    def discard(self, trace: ConcreteFunction) -> None:
        """Forget a trace."""
        entry = self._entries.pop(trace, None)
        for key in () if entry is None else entry.keys:
            self.by_key.pop(key, None)

    def clear(self) -> None:
        """Forget all traces."""
        self.by_key.clear()
        self._entries.clear()

    def info(self) -> CacheInfo:
        """Say how much there is."""
        traces = list(self._entries)
        return CacheInfo(
            len(traces), sum(trace.n_plans for trace in traces),
            sum(trace.nbytes for trace in traces), self._max_traces, self._max_bytes)

    def _remove(self, key: tuple) -> None:
        trace = self.by_key.pop(key, None)
        entry = None if trace is None else self._entries.get(trace)
        if trace is not None and entry is not None:
            entry.keys = [other for other in entry.keys if other != key]
            if not entry.keys:
                self.discard(trace)

    def _make_room(self, used: ConcreteFunction) -> None:
        """Give up what was used least recently if there is too much, after a new plan.

        Other traces first; then plans of the one that is used, each part of which keeps its last.
        """
        entry = self._entries.get(used)
        if entry is None:
            return
        entry.nbytes = used.nbytes  # the others make room for their plans themselves
        while (excess := self._excess()) > 0 and len(self._entries) > 1:
            self.discard(self._oldest(used))
        if excess > 0:
            plans = [(*plan, executable) for executable in used.executables()
                     for plan in executable.plans_to_spare()]
            for _, nbytes, specs, executable in sorted(plans, key=lambda plan: plan[0]):
                if excess <= 0:
                    break
                executable.drop(specs)
                excess -= nbytes

    def _excess(self) -> int:
        assert self._max_bytes is not None
        return sum([entry.nbytes for entry in list(self._entries.values())]) - self._max_bytes

    def _oldest(self, newest: ConcreteFunction) -> ConcreteFunction:
        return min((trace for trace in list(self._entries) if trace is not newest),
                   key=lambda trace: trace.last_use, default=newest)


def _reference(x: Any, forget: Any) -> Any:
    """Return a weak reference to an object; itself where there is none, so that its id holds."""
    try:
        return weakref.ref(x, forget)
    except TypeError:
        return x


def _forget(
    traces: weakref.ref[Traces], trace: weakref.ref[ConcreteFunction], _: Any
) -> None:
    """Forget a trace, one of whose objects is dying."""
    of_function, dead = traces(), trace()
    if of_function is not None and dead is not None:
        of_function.discard(dead)


def _forget_key(traces: weakref.ref[Traces], key: tuple, _: Any) -> None:
    """Forget one key of a trace, one of whose objects is dying."""
    of_function = traces()
    if of_function is not None:
        of_function._remove(key)


def _make_room(traces: weakref.ref[Traces], trace: weakref.ref[ConcreteFunction]) -> None:
    """Make room for a new plan of a trace."""
    of_function, used = traces(), trace()
    if of_function is not None and used is not None:
        of_function._make_room(used)
