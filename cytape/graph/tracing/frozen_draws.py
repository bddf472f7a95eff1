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
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from cytape.graph.tracing.lines_of_draws import imported_in, place_of_draw
from cytape.ops.shared.reachable import (
    Reachable,
    is_of_cytape,
    numpy_global,
    python_global,
    state_of,
)

__all__ = ["Draws", "call_traced"]


def call_traced(graph: Any, f: Callable, args: Sequence[Any] = (), kwargs: Any = None) -> Any:
    """Call a function whose trace becomes a graph; warn of what it draws.

    Not if variables were made, from drawn numbers perhaps: then it is traced once more.
    """
    kwargs = kwargs or {}
    draws = Draws(f, (*args, *kwargs.values()))
    being_traced = _tracing.draws
    being_traced.append(draws)
    try:
        results = f(*args, **kwargs)
    finally:
        being_traced.remove(draws)
    moved = draws.moved()
    if moved and not any(graph.n_variables_made for graph in _around(graph)):
        draws.warn(graph.name, moved, being_traced)
    return results


class _Tracing(threading.local):
    """What is being traced in a thread, from the outermost to the innermost."""

    def __init__(self) -> None:
        self.draws: list[Draws] = []


_tracing = _Tracing()


def _around(graph: Any) -> Iterator[Any]:
    """Yield a trace and those in which it is made."""
    while graph is not None:
        if hasattr(graph, "n_variables_made"):
            yield graph
        graph = getattr(graph, "outer_graph", None)


class Draws(Reachable):
    """The random streams that a function may draw from, as they were before a call.

    Parameters
    ----------
    f : callable
    arguments : tuple
        What it is going to be called with.
    """

    __slots__ = ()

    def warn(self, name: str, moved: list[int], being_traced: list[Draws]) -> None:
        """Warn of generators that have drawn, at the line where that happened."""
        for place in moved:
            generator, before = self.generators[place], self.states[place]
            for around in being_traced:  # which would say it once more
                if around.states.get(place) == before:
                    around.states[place] = state_of(generator)
            what = "np.random" if generator is numpy_global else (
                "Python's random" if generator is python_global else
                f"a {type(generator).__name__}")
            file, line, registry = place_of_draw(self.functions, generator)
            warnings.warn_explicit(
                f"{name} drew random numbers from {what} while it was traced; each call will "
                "use these again. Draw with cytape.numpy.random, which draws anew in each "
                "call, or draw outside and pass an array",
                UserWarning, file, line, registry=registry)

    def streams(self) -> list[Any]:
        """List the generators that the function may draw from; those of modules in any case."""
        found = self.generators
        return [*found.values()] if id(python_global) in found else [*found.values(), python_global]

    def may_reach(self, generator: Any) -> bool:
        """Tell whether the function was seen to have a way to one of these."""
        if generator not in (numpy_global, python_global) or id(generator) in self.seen:
            return True
        imported = {name for function, _ in self.functions if not is_of_cytape(function)
                    for name in imported_in(function.__code__)}
        if generator is python_global:
            return id(random) in self.seen or "random" in imported
        return id(np.random) in self.seen or "numpy.random" in imported or (
            "random" in self.names and (id(np) in self.seen or "numpy" in imported))
