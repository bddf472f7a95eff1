"""Progress of long computations: calls of a user's function, or a bar.

A `Progress` counts steps, in eager code and, by a node that calls it, in graphs.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Sequence
from time import monotonic
from typing import Any, TextIO

import numpy as np

from cytape.ops.python.python_ops import PythonCall, python_values_op
from cytape.tensor.recording.state import current_graph
from cytape.tensor.values.spec import Spec

__all__ = ["Progress", "line_of", "print_line", "progress_of", "tqdm_class"]

INTERVAL = 0.1  # seconds between calls
LINE_INTERVAL = 5.0  # ... and between lines of text


def tqdm_class() -> Any:
    """Return the class of tqdm's bars, None if tqdm is not installed."""
    try:
        from tqdm import tqdm
    except ImportError:
        return None
    return tqdm


def line_of(done: int, total: int | None) -> str:
    """Return the progress as text.

    Examples
    --------
    >>> line_of(3, 4), line_of(3, None)
    ('3/4  75 %', '3')
    """
    return f"{done}/{total}  {100 * done // total} %" if total else f"{done}"


def print_line(text: str, file: TextIO | None) -> None:
    """Print a line, to the standard error by default."""
    print(text, file=file or sys.stderr, flush=True)


class _Bar:
    """Bar by tqdm, or lines of text, as a function of the steps done and of all."""

    def __init__(self) -> None:
        self._bar: Any = None
        self._last = monotonic()

    def __call__(self, done: int, total: int | None) -> None:
        tqdm = tqdm_class()
        if tqdm is None:
            if done == total or monotonic() - self._last >= LINE_INTERVAL:
                self._last = monotonic()
                print_line(line_of(done, total), None)
            return
        if self._bar is None:
            self._bar = tqdm(total=total)
        self._bar.update(done - self._bar.n)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()
            self._bar = None


class Progress:
    """Count of finished steps, reported at most ten times a second and at the end.

    Parameters
    ----------
    report : callable
        Called with the steps that are done and the number of all.
    total : int or None
        None: unknown.

    Examples
    --------
    >>> progress = Progress(print, 2)
    >>> progress.step()
    >>> progress.step()
    2 2
    """

    def __init__(self, report: Callable[[int, int | None], Any], total: int | None) -> None:
        self._report, self._total_of_one = report, total
        self.begin()

    def begin(self, done: int = 0, members: int = 1) -> None:
        """Start to count anew, all steps of so many members of a batch."""
        self._restart(done)
        self.total = None if self._total_of_one is None else self._total_of_one * members

    def _restart(self, done: int) -> None:
        self.done, self._reported, self._last = done, -1, monotonic()

    def step(self) -> None:
        """Count a step."""
        if self.done == self.total:
            self._restart(0)  # the loop of a graph, in another run
        self.done += 1
        if self.done == self.total:
            self.end()
        elif (now := monotonic()) - self._last >= INTERVAL:
            self._last = now
            self._tell()

    def end(self) -> None:
        """Report the end."""
        if self.done != self._reported:
            self._tell()
        if isinstance(self._report, _Bar):
            self._report.close()

    def finish(self) -> None:
        """Count all remaining steps, and report the end."""
        self.done = self.done if self.total is None else self.total
        self.end()

    def _tell(self) -> None:
        self._reported = self.done
        self._report(self.done, self.total)

    def anywhere(self, method: str, **arguments: int) -> None:
        """Call a method, or add a node that calls it to the graph that is being built."""
        graph = current_graph()
        if graph is None:
            getattr(self, method)(**arguments)
        else:
            graph.build(python_values_op, call=_Call(self, method, arguments))

    def counting(self, function: Callable) -> Callable:
        """Begin, and return a function that counts its calls as steps."""
        self.anywhere("begin")

        @functools.wraps(function)
        def counted(*args: Any) -> Any:
            result = function(*args)
            self.anywhere("step")
            return result

        return counted


class _Call(PythonCall):
    """A method of a `Progress` as the function of a node."""

    name = "progress"

    def __init__(self, progress: Progress, method: str, arguments: dict[str, int]) -> None:
        self._progress, self._method, self._arguments = progress, method, arguments

    def run(self, *arrays: Any) -> list:
        getattr(self._progress, self._method)(**self._arguments)
        return []

    def for_members(self, extent: int | None) -> Any:
        if self._method == "step" or extent is None:
            return NotImplemented
        arguments = dict(self._arguments)
        if self._method == "begin":
            arguments["members"] = extent * arguments.get("members", 1)
        self._progress.anywhere(self._method, **arguments)
        return []

    def result_specs(self, specs: Sequence[Spec]) -> list[Spec]:
        return []


def progress_of(progress: Any, total: Any) -> Progress | None:
    """Return the `Progress` for an argument of a user; None if there is none.

    Raises
    ------
    TypeError
        If the argument is not a function, a boolean or None.

    Examples
    --------
    >>> progress_of(None, 3) is None
    True
    """
    if progress is None or progress is False:
        return None
    total = int(total) if isinstance(total, (int, np.integer)) else None
    if progress is True:
        return Progress(_Bar(), total)
    if not callable(progress):
        raise TypeError(
            "progress must be a function of the number of steps done and of all, or True for a "
            f"bar, got {progress!r}")
    return Progress(progress, total)
