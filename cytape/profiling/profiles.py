"""`cytape.profile`: time and memory of the ops that a block runs, as tables, traces and pages.

`op_hooks` measures; this module sums up. The own time of a call is its time without the calls
inside of it, so that the own times of all calls are at most the time of the block.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from html import escape
from itertools import accumulate
from pathlib import Path
from time import perf_counter
from types import TracebackType
from typing import NamedTuple

from cytape.profiling import op_hooks
from cytape.profiling.op_hooks import Event
from cytape.tensor.pictures.html_text import size_text, table
from cytape.tensor.pictures.memory_timeline import timeline
from cytape.tensor.pictures.picture import Picture
from cytape.tensor.pictures.trace_events import Span, trace_json
from cytape.tensor.values.user_warnings import cell_of

__all__ = ["OpRow", "Profile", "profile"]

HEAD = ("op", "line", "calls", "forward ms", "backward ms", "bytes")
BUILDING = "graph building"
MOST_POINTS = 2000  # of a curve


class OpRow(NamedTuple):
    """The calls of an op in one line of the program.

    Attributes
    ----------
    name : str
        The op type.
    file, line : str, int
        "", 0 if unknown.
    calls : int
        Of the op, without those of its backward function.
    forward, backward : float
        Seconds, without the calls of other ops inside.
    nbytes : int
        Of the results of all calls, not of gradients.
    """

    name: str
    file: str
    line: int
    calls: int
    forward: float
    backward: float
    nbytes: int


class Profile:
    """Time and memory of the ops that a ``with`` block runs in its thread.

    Attributes
    ----------
    seconds : float
        The time from the beginning of the block to its end.

    See Also
    --------
    profile : Makes one.
    """

    def __init__(self) -> None:
        self.seconds = 0.0
        self._events: list[Event] = []
        self._memory: list[tuple[float, int]] = []
        self._log: op_hooks.Log | None = None

    def __enter__(self) -> Profile:
        if self._log is not None:
            raise ValueError("this profile is running already: make another one for a block inside")
        self._log = op_hooks.begin()
        self._first = len(self._log.events), len(self._log.memory)
        self._start = perf_counter()
        return self

    def __exit__(
        self, kind: type[BaseException] | None = None, error: BaseException | None = None,
        traceback: TracebackType | None = None,
    ) -> None:
        self.seconds = perf_counter() - self._start
        log, self._log = self._log, None
        if log is None:
            return
        op_hooks.end(log)
        first_event, first_memory = self._first
        before = sum(nbytes for _, nbytes in log.memory[:first_memory])
        self._events = log.events[first_event:]
        self._memory = _levels(
            self._start, before, log.memory[first_memory:], self._events)
        self._rows = _rows_of(self._events)

    # ---- numbers

    @property
    def rows(self) -> list[OpRow]:
        """The ops, those that took longest first.

        Examples
        --------
        >>> import numpy as np
        >>> import cytape
        >>> x = cytape.constant(np.ones(100))
        >>> with cytape.profile() as p:
        ...     for _ in range(3):
        ...         y = np.sin(x)
        >>> [(row.name, row.calls, row.nbytes) for row in p.rows]
        [('Sin', 3, 2400)]
        """
        return list(self._rows) if self._events else []

    @property
    def op_seconds(self) -> float:
        """The time of all ops. The rest of `seconds` is the program's and the profile's own."""
        return sum(row.forward + row.backward for row in self.rows)

    @property
    def memory(self) -> list[tuple[float, int]]:
        """Seconds since the beginning, and the bytes in memory from then on.

        They are those of the results of ops and plans that ran in the block, and of gradients,
        until they are freed, and of the plans that run: not of arguments, nor of what an op
        allocates for itself.
        """
        return [(time - self._start, nbytes) for time, nbytes in self._memory]

    @property
    def peak_bytes(self) -> int:
        """The most bytes in memory at any time, as `memory` counts them."""
        return max((nbytes for _, nbytes in self._memory), default=0)

    # ---- texts and files

    def table(self, n_rows: int = 20) -> str:
        """Return a table of the ops that took longest.

        Parameters
        ----------
        n_rows : int, optional

        Examples
        --------
        >>> import cytape
        >>> print(cytape.profile().table())
        op  line  calls  forward ms  backward ms  bytes
        0 ops took 0 of 0 ms; peak 0 bytes
        """
        rows = [HEAD, *map(_cells, self.rows[:n_rows])]
        widths = [max(len(row[i]) for row in rows) for i in range(len(HEAD))]
        lines = ["  ".join(
            [cell.ljust(width) if i < 2 else cell.rjust(width)
             for i, (cell, width) in enumerate(zip(row, widths, strict=True))]) for row in rows]
        if len(self.rows) > n_rows:
            lines.append(f"... and {len(self.rows) - n_rows} more")
        return "\n".join([*lines, self._summary()])

    def _summary(self) -> str:
        n_calls = sum(row.calls for row in self.rows)
        return (f"{n_calls} ops took {self.op_seconds * 1e3:.4g} of {self.seconds * 1e3:.4g} ms; "
                f"peak {size_text(self.peak_bytes)}")

    def __str__(self) -> str:
        return self.table()

    def __repr__(self) -> str:
        return f"<Profile: {self._summary()}>"

    def _repr_html_(self) -> str:
        return table(HEAD, map(_cells, self.rows[:20]), self._summary())

    def draw(self) -> Picture:
        """Return a picture of the bytes in memory over time, which notebooks show."""
        memory = _thinned(self.memory) or [(0.0, 0)]
        times = [time * 1e3 for time, _ in memory] + [self.seconds * 1e3]
        return Picture(timeline({"results of ops": [nbytes for _, nbytes in memory]}, times, "ms"))

    def to_chrome_trace(self, path: str | os.PathLike[str]) -> None:
        """Write all calls, and the bytes in memory, to a file for ``chrome://tracing`` or Perfetto.

        Parameters
        ----------
        path : str or path
            Of a file of JSON, in the trace event format.

        Examples
        --------
        >>> import json, os, tempfile
        >>> import cytape
        >>> with cytape.profile() as p:
        ...     y = cytape.constant(1.0) * 2
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     p.to_chrome_trace(os.path.join(folder, "trace.json"))
        ...     with open(os.path.join(folder, "trace.json")) as file:
        ...         "Multiply" in [call["name"] for call in json.load(file)["traceEvents"]]
        True
        """
        Path(path).write_text(trace_json(
            [Span(event.name, event.kind, event.start, event.end,
                  {"line": _place(event.file, event.line), "bytes": event.nbytes})
             for event in self._events], self._memory), encoding="utf-8")

    def to_html(self, path: str | os.PathLike[str]) -> None:
        """Write a page with the table and the bytes in memory over time, complete in one file.

        Parameters
        ----------
        path : str or path

        Examples
        --------
        >>> import os, tempfile
        >>> import cytape
        >>> with cytape.profile() as p:
        ...     y = cytape.constant(1.0) * 2
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     p.to_html(os.path.join(folder, "profile.html"))
        """
        rows = ([row.name, f"{row.file}:{row.line}" if row.file else "", *_cells(row)[2:]]
                for row in self.rows)
        Path(path).write_text("\n".join([
            "<!DOCTYPE html>", '<html lang="en"><head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width"><title>Profile</title>',
            f"<style>{STYLE}</style></head><body>", "<h1>Profile</h1>",
            f"<p>{escape(self._summary())}</p>",
            "<h2>Memory</h2>", str(self.draw()), "<h2>Ops</h2>",
            table(HEAD, rows), "</body></html>", ""]), encoding="utf-8")


STYLE = ("body{font-family:sans-serif;margin:2em;max-width:70em}table{border-collapse:collapse}"
         "td,th{padding:2px 10px;border-bottom:1px solid #ddd;text-align:left}"
         "svg{max-width:100%;height:auto}")


def profile() -> Profile:
    """Measure time and memory of each op within a ``with`` block.

    It measures calls of ops, their backward functions, and each step of plans (of
    `cytape.function`, of sessions), in the thread that entered the block. Derivatives of forward
    mode count as time of the op. Blocks may be nested. Each measured call takes some microseconds
    more; outside of blocks nothing does. In a plan, a loop or a branch is one step.

    Returns
    -------
    Profile
        ``print(p)`` shows a table; notebooks show it, too. `p.to_html` and `p.to_chrome_trace`
        write files.

    Examples
    --------
    >>> import numpy as np
    >>> import cytape
    >>> x = cytape.Variable(np.ones(1000))
    >>> with cytape.profile() as p:
    ...     with cytape.GradientTape() as tape:
    ...         loss = (x * x).sum()
    ...     gradient = tape.gradient(loss, x)
    >>> sorted((row.name, row.calls, row.nbytes) for row in p.rows if row.calls)
    [('Multiply', 1, 8000), ('Sum', 1, 8)]
    >>> 0 < p.op_seconds < p.seconds
    True
    """
    return Profile()


def _place(file: str, line: int) -> str:
    return f"{cell_of(file) or os.path.basename(file)}:{line}" if file else ""


def _cells(row: OpRow) -> list[str]:
    return [row.name, _place(row.file, row.line), str(row.calls), _milliseconds(row.forward),
            _milliseconds(row.backward), f"{row.nbytes:,}"]


def _milliseconds(seconds: float) -> str:
    return f"{round(seconds * 1e3, 4):.4g}"


def _with_outer(events: list[Event]) -> Iterator[tuple[Event, Event | None, bool, float]]:
    """Yield each call, the one around it, whether a backward one is around, and its own time."""
    order = sorted(range(len(events)), key=lambda i: (events[i].start, -events[i].end, -i))
    outer: dict[int, int | None] = {}
    inside = [0.0] * len(events)
    stack: list[int] = []
    for i in order:
        while stack and events[stack[-1]].end < events[i].end:
            stack.pop()
        outer[i] = stack[-1] if stack else None
        if stack:
            inside[stack[-1]] += events[i].end - events[i].start
        stack.append(i)
    is_backward: dict[int | None, bool] = {None: False}
    for i in order:
        event, around = events[i], outer[i]
        is_backward[i] = event.kind == op_hooks.BACKWARD or is_backward[around]
        yield (event, None if around is None else events[around], is_backward[i],
               event.end - event.start - inside[i])


def _rows_of(events: list[Event]) -> list[OpRow]:
    found: dict[tuple[str, str, int], list] = {}
    for event, outer, is_backward, seconds in _with_outer(events):
        name = BUILDING if event.kind == op_hooks.BUILD else event.name
        row = found.setdefault((name, event.file, event.line), [0, 0.0, 0.0, 0])
        row[2 if is_backward else 1] += seconds
        again = outer is not None and outer[:2] == event[:2] and outer.kind == op_hooks.FORWARD
        if event.kind != op_hooks.BACKWARD and not again:  # an op may call itself with other types
            row[0] += 1
            row[3] += event.nbytes
    return sorted((OpRow(*key, *row) for key, row in found.items()),
                  key=lambda row: -row.forward - row.backward)


def _levels(
    start: float, before: int, changes: list[tuple[float, int]], events: list[Event]
) -> list[tuple[float, int]]:
    """Return times, and the bytes in memory from then on."""
    changes = [(start, before), *changes]
    for event in events:
        if event.live_bytes:
            changes += [(event.start, event.live_bytes), (event.end, -event.live_bytes)]
    changes.sort(key=lambda change: change[0])
    times = [time for time, _ in changes]
    return list(zip(times, accumulate(nbytes for _, nbytes in changes), strict=True))


def _thinned(memory: list[tuple[float, int]]) -> list[tuple[float, int]]:
    """Return as many points as a curve can show: the highest of each group of neighbours."""
    step = -(-len(memory) // MOST_POINTS) or 1
    return [(memory[i][0], max(nbytes for _, nbytes in memory[i:i + step]))
            for i in range(0, len(memory), step)]
