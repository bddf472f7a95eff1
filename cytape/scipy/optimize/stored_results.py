"""Derivatives of users' functions that may store the result of their last call.

Such a function would return an array of an earlier call for a tensor of equal values, which then
has no derivative. It is called at a point nearby before.
"""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np

from cytape.graph.tracing.kept_traces import Identity


def forgetting(derivative: Callable, function: Callable, reads: Identity | None) -> Callable:
    """Return a derivative that calls its function at another point before.

    A function of which all that it reads is known, by `reads`, stores nothing.
    """
    if reads is not None:
        return derivative

    def called(x: Any, *others: Any) -> Any:
        call_near(function, x)
        return derivative(x, *others)

    return called


def call_near(function: Callable, x: np.ndarray) -> None:
    """Call a function at another point, which may be outside of its domain."""
    with suppress(Exception), np.errstate(all="ignore"):
        function(np.nextafter(x, np.inf))
