"""Warnings of random draws by Python during tracing, which every call of the trace would repeat.

A draw changes the state of its generator. The generators that a function may use are found without
running it (see `Reachable`), and their states are compared before and after tracing. The line of a
draw is found in the bytecode.
"""

from cytape.ops.python.reachable cimport state_of

import threading
import warnings

import numpy as np

from cytape.graph.tracing.lines_of_draws import place_of_draw
from cytape.ops.python.draws import times_seeded
from cytape.ops.python.reachable import numpy_global, python_global
from cytape.tensor.names_elsewhere import advise

__all__ = ["Draws", "call_traced"]


cpdef call_traced(graph, f, args=(), kwargs=None):
    """Call a function that is traced; warn of draws by Python.

    No warning if variables were created, perhaps from drawn numbers, since the function is traced
    again; and none if the trace is for one call.
    """
    cdef Draws draws = Draws(f, (*args, *kwargs.values()) if kwargs else tuple(args))
    cdef list being_traced = tracing.draws
    cdef Py_ssize_t n_seedings = times_seeded()
    being_traced.append(draws)
    try:
        results = f(*args, **kwargs) if kwargs else f(*args)
    except TypeError as error:
        advise(error)
        raise
    finally:
        being_traced.remove(draws)
    moved = draws.moved()
    seeded = times_seeded() != n_seedings
    if seeded and id(numpy_global) not in moved:  # to its state before
        moved.append(id(numpy_global))
    if moved and not graph.runs_once and not makes_variables(graph):
        draws.warn(graph, moved, being_traced, seeded)
    return results


class Tracing(threading.local):
    """The functions being traced in a thread, from the outermost to the innermost."""

    def __init__(self):
        self.draws = []


cdef object tracing = Tracing()


cdef bint makes_variables(graph) except -1:
    """Return whether variables were created in this trace or in one around it."""
    while graph is not None:
        if getattr(graph, "n_variables_made", 0):
            return True
        graph = getattr(graph, "outer_graph", None)
    return False


cdef bint is_of_member(graph) except -1:
    """Return whether this trace, or one around it, is for the members of a batch."""
    while graph is not None:
        if getattr(graph, "of_member", False):
            return True
        graph = getattr(graph, "outer_graph", None)
    return False


cdef class Draws(Reachable):
    """The random streams that a function may draw from, with their states before a call.

    Parameters
    ----------
    f : callable
    arguments : tuple
        The arguments of the call.
    """

    cdef int warn(self, graph, list moved, list being_traced, bint seeded) except -1:
        """Warn of generators that have drawn, at the line of the draw.

        seeded: whether `cytape.numpy.random.seed` was called, which seeds NumPy's generator.
        """
        cdef Draws around
        for place in moved:
            generator, before = self.generators[place], self.states[place]
            for around in being_traced:  # these would warn, too
                if around.states.get(place) == before:
                    around.states[place] = state_of(generator)
            what = "np.random" if generator is numpy_global else (
                "Python's random" if generator is python_global else
                f"a {type(generator).__name__}")
            file, line, registry, seeds = place_of_draw(
                self.functions, generator, seeded and generator is numpy_global)
            repeated, anew = "each call will use these again", "in each call"
            if is_of_member(graph):
                repeated, anew = "all members get the same", "for each member"
                if being_traced:
                    repeated += ", in each call"
            message = (
                f"{graph.name} drew random numbers from {what} while it was traced; {repeated}. "
                f"Draw with cytape.numpy.random, which draws anew {anew}, or draw outside and "
                "pass an array")
            if seeds:
                did = "set the state of" if isinstance(generator, np.random.Generator) else "seeded"
                message = (
                    f"{graph.name} {did} {what} once, while it was traced, and not {anew}. Call "
                    "cytape.numpy.random.seed before it, with which its draws by "
                    "cytape.numpy.random begin anew, too; or pass seed= to these")
            warnings.warn_explicit(message, UserWarning, file, line, registry=registry)
        return 0
