"""Random numbers that Python draws while a function is traced: each call would repeat them.

A draw changes its generator. Which generators a function may draw from is told by what can be
reached from it without running anything: NumPy's global one, those among the arguments, in their
attributes and containers, and those that it and the functions and methods that it uses name. That
some generator has changed is told by its memory; the line is looked for in the bytecode then.
"""

from __future__ import annotations

import random
import threading
import warnings
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from cytape.graph.tracing.lines_of_draws import imported_in, place_of_draw
from cytape.graph.tracing.reachable import (
    Reachable,
    is_of_cytape,
    numpy_global,
    python_global,
    state_of,
)

__all__ = ["Draws", "call_traced"]


def call_traced(graph: Any, f: Callable, args: Iterable[Any] = (), kwargs: Any = None) -> Any:
    """Call a function whose trace becomes a graph; warn of what it draws.

    Not if variables were made, from drawn numbers perhaps: then it is traced once more.
    """
    args, kwargs = tuple(args), kwargs or {}
    with Draws(f, (*args, *kwargs.values())) as draws:
        results = f(*args, **kwargs)
    around = graph
    while around is not None and not getattr(around, "n_variables_made", 0):
        around = getattr(around, "outer_graph", None)
    if around is None:
        draws.warn(graph.name)
    return results


class _Tracing(threading.local):
    """What is being traced in a thread, from the outermost to the innermost."""

    def __init__(self) -> None:
        self.draws: list[Draws] = []


_tracing = _Tracing()


class Draws:
    """Notices what a function draws that is traced; a context to call it in.

    Parameters
    ----------
    f : callable
    arguments : tuple
        What it is going to be called with.
    """

    def __init__(self, f: Callable, arguments: tuple[Any, ...] = ()) -> None:
        self._reachable = Reachable(f, arguments)
        self._before = {
            place: state_of(x) for place, x in self._reachable.generators.items()}

    def __enter__(self) -> Draws:
        _tracing.draws.append(self)
        return self

    def __exit__(self, *_: object) -> None:
        _tracing.draws.remove(self)

    def warn(self, name: str) -> None:
        """Warn if any generator has drawn since, at the line where that happened."""
        for place, generator in self._reachable.generators.items():
            before, now = self._before[place], state_of(generator)
            if now != before:
                for around in _tracing.draws:  # which would say it once more
                    if around._before.get(place) == before:
                        around._before[place] = now
                what = "np.random" if generator is numpy_global else (
                    "Python's random" if generator is python_global else
                    f"a {type(generator).__name__}")
                file, line, registry = place_of_draw(self._reachable.functions, generator)
                warnings.warn_explicit(
                    f"{name} drew random numbers from {what} while it was traced; each call will "
                    "use these again. Draw with cytape.numpy.random, which draws anew in each "
                    "call, or draw outside and pass an array",
                    UserWarning, file, line, registry=registry)

    def generators(self) -> list[Any]:
        """List the generators that the function may draw from; those of modules in any case."""
        found = self._reachable.generators
        return [*found.values()] if id(python_global) in found else [*found.values(), python_global]

    def names(self, generator: Any) -> bool:
        """Tell whether the function was seen to have a way to one of these."""
        seen = self._reachable.seen
        if generator not in (numpy_global, python_global) or id(generator) in seen:
            return True
        imported = {name for function, _ in self._reachable.functions if not is_of_cytape(function)
                    for name in imported_in(function.__code__)}
        if generator is python_global:
            return id(random) in seen or "random" in imported
        return id(np.random) in seen or "numpy.random" in imported or (
            "random" in self._reachable.names and (id(np) in seen or "numpy" in imported))
