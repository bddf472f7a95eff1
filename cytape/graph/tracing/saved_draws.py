"""Saved states of random streams, to undo the draws of a trial call."""

from __future__ import annotations

from collections.abc import Callable

from cytape.graph.tracing.frozen_draws import Draws
from cytape.ops.shared.python_call import install_saved_draws
from cytape.ops.shared.reachable import state_of
from cytape.ops.shared.repeated_draws import restorer

__all__ = ["saved_draws"]


def saved_draws(function: Callable, arguments: tuple) -> Callable[[], None]:
    """Save the random streams that a call may draw from, as far as they can be found.

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
    draws = Draws(function, arguments)
    saved = [(x, state_of(x), restorer(x)) for x in draws.streams()]

    def restore() -> None:
        # A module's stream that the call does not reach was moved by another thread.
        for generator, before, restored in saved:
            if state_of(generator) != before and draws.may_reach(generator):
                restored()

    return restore


install_saved_draws(saved_draws)
