cimport cython
from cytape.ops.calls.dispatch cimport value_of
from cytape.tensor.tensor cimport new_tensor
from numpy cimport npy_intp

from .instructions cimport Instruction
from .plan_compiler cimport compile

from collections import Counter

from cytape.tensor.pictures.html_text import described, size_text, table

cdef enum:
    MOST_SHOWN = 20  # kinds of ops in a notebook


cdef object tracer = None


def set_tracer(trace):
    """Set the trace of all runs whose caller gives none, in all threads; None ends tracing."""
    global tracer
    tracer = trace


@cython.final
cdef class Plan:
    """A piece of a graph compiled to instructions and a layout of memory, ready to run.

    Parameters
    ----------
    subgraph : Subgraph
        Which symbols are fed and fetched, and which nodes run in any case.

    Attributes
    ----------
    peak_bytes : int
        The most bytes that intermediate and fetched values take at any time.
    arena_bytes : int
        What is kept for intermediate values between runs.
    nbytes : int
        What is kept in all: the arena, instructions and their geometry, those of loops and
        branches included.

    Raises
    ------
    GraphError
        If a placeholder is needed that is not fed.

    Examples
    --------
    >>> import numpy as np
    >>> from cytape.graph import Graph
    >>> from cytape.graph.model.subgraph import Subgraph
    >>> graph = Graph()
    >>> x = graph.placeholder("float64", ())
    >>> y = x * x + 1.0
    >>> plan = Plan(Subgraph(graph, (graph.symbol_of(x),), (graph.symbol_of(y),)))
    >>> plan.run([np.array(3.0)])
    [Tensor(10.)]
    """

    def __init__(self, subgraph):
        self.code = Code(subgraph)
        compile(self.code, tuple(subgraph.keep))

    @property
    def peak_bytes(self) -> int:
        return self.code.peak_bytes

    @property
    def arena_bytes(self) -> int:
        return self.code.layout.small_bytes + self.code.layout.large_bytes

    @property
    def nbytes(self) -> int:
        return self.size()

    def __repr__(self):
        return (f"<Plan of {self.n_instructions} instructions, {self.n_calls} of them calls of "
                f"Python, peak_bytes={self.peak_bytes}>")

    def _repr_html_(self):
        cdef Code code = self.code
        counts = Counter([code.graph.ops[code.code[i].node].name for i in range(code.n_code)])
        return described("Plan", f"peak {size_text(self.peak_bytes)}, arena "
                         f"{size_text(self.arena_bytes)}", repr(self)) + table(
            ["op", "instructions"],
            [(name, str(count)) for name, count in counts.most_common(MOST_SHOWN)])

    cdef Py_ssize_t size(self) except -1:
        cdef Code code = self.code
        cdef Py_ssize_t nbytes = (
            code.layout.small_bytes + code.layout.large_bytes + code.graph.size_of_nodes()
            + 2 * code.n_code * <Py_ssize_t>sizeof(Instruction)
            + code.n_pool * <Py_ssize_t>sizeof(npy_intp))
        for subprogram in code.subprograms:
            nbytes += subprogram.nbytes
        return nbytes

    @property
    def n_instructions(self) -> int:
        """The number of instructions."""
        return self.code.n_code

    @property
    def n_calls(self) -> int:
        """The number of instructions that call Python."""
        cdef int i
        return sum([1 for i in range(self.code.n_spans) if self.code.spans[i].is_call])

    def run(self, values, trace=None) -> list:
        """Compute the fetches.

        Parameters
        ----------
        values, trace
            As for `Executable.run`; values must have the shapes and dtypes of the feeds.
        """
        cdef list given = [value_of(x, False) for x in values]
        return [new_tensor(value) for value in self.run_traced(given, trace or tracer)]

    cdef list run_values(self, list values):
        return self.run_traced(values, tracer)

    cdef list run_traced(self, list values, trace):
        cdef Frame frame = self.idle
        self.idle = None
        if frame is None:
            frame = Frame(self.code)
        try:
            return frame.execute(values, trace)
        finally:
            self.idle = frame
