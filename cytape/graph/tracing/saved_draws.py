"""Random streams that are to continue as if a call that was made only to try it had not been."""

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
        What it uses, besides what it names.

    Returns
    -------
    callable
        Has those continue from here that have moved. What other threads draw from them meanwhile
        they draw once more, so the global streams are left alone if the call does not name them.

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
        # A stream of a module, of which the call knows nothing, was moved by another thread.
        for generator, before, restored in saved:
            if state_of(generator) != before and draws.may_reach(generator):
                restored()

    return restore


install_saved_draws(saved_draws)
