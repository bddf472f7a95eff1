"""Progress of a training loop: tqdm's bar if tqdm is installed, otherwise lines of text."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sized
from typing import Any, TextIO

from cytape.ops.python.progress_reports import line_of, print_line, tqdm_class

__all__ = ["progress"]


def progress(
    iterable: Iterable[Any], total: int | None = None, *, file: TextIO | None = None,
    interval: float = 5.0, plain: bool = False,
) -> Any:
    """Return an iterable that shows how far a loop over it is.

    Parameters
    ----------
    iterable : iterable
    total : int, optional
        The number of its items, by default ``len(iterable)`` if that is defined.
    file : file, optional
        By default the standard error.
    interval : float, optional
        Seconds between lines.
    plain : bool, optional
        Whether to print lines even if tqdm is installed.

    Returns
    -------
    iterable
        With the method `set_postfix`: its keyword arguments are shown. It is a `tqdm.tqdm` object
        if tqdm is installed.

    Examples
    --------
    >>> from cytape.optimizers import progress
    >>> import sys
    >>> bar = progress(range(3), file=sys.stdout, plain=True)
    >>> for step in bar:
    ...     bar.set_postfix(loss=1 / (step + 1))
    3/3  100 %  loss=0.333333
    """
    if total is None and isinstance(iterable, Sized):
        total = len(iterable)
    if not plain:
        tqdm = tqdm_class()
        if tqdm is not None:
            return tqdm(iterable, total=total, file=file)
    return _Lines(iterable, total, file, interval)


class _Lines:
    """Iterable that prints a line every few seconds, and one at its end."""

    def __init__(
        self, iterable: Iterable[Any], total: int | None, file: TextIO | None, interval: float,
    ) -> None:
        self._iterable, self._total, self._file = iterable, total, file
        self._interval, self._shown = interval, ""

    def set_postfix(self, **shown: Any) -> None:
        """Show numbers, such as ``loss=0.5``, in later lines."""
        self._shown = "".join(f"  {key}={_short(value)}" for key, value in shown.items())

    def __iter__(self) -> Iterator[Any]:
        done, last = 0, time.monotonic()
        for item in self._iterable:
            yield item
            done += 1
            if time.monotonic() - last >= self._interval and done != self._total:
                last = time.monotonic()
                self._print(done)
        self._print(done)

    def _print(self, done: int) -> None:
        print_line(line_of(done, self._total) + self._shown, self._file)


def _short(value: Any) -> str:
    try:
        return f"{float(value):.6g}"
    except (TypeError, ValueError):
        return str(value)
