# Rewriting: the copy of a subgraph node by node, with changes; the common part of all passes.
#
#     mapping[symbol of the source]    = symbol of the target, or ABSENT
#     successors[node of the source]   = node of the target that runs in its place, or ABSENT
#
# A pass makes a `Rewriting(subgraph)`, visits the live nodes in run order, and copies each or
# replaces its outputs by symbols of the target.

from cytape.ops.calls.symbolic cimport SymbolicGraph
from cytape.tensor.values.spec cimport Spec
from libc.stdint cimport int32_t

cdef enum:
    ABSENT = -1

cdef class RewrittenGraph(SymbolicGraph):
    cdef dict control_inputs     # node -> list of nodes
    cdef SymbolicGraph root      # the graph before the first pass
    cdef dict built_at           # op, place and context -> nodes of the root; made at first use

cdef class Rewriting:
    cdef readonly SymbolicGraph source
    cdef readonly RewrittenGraph target
    cdef tuple feeds, fetches, keep
    cdef int32_t* mapping
    cdef int32_t* successors
    cdef char* live              # per node of the source: it has to run
    cdef char* pinned            # is or has a control input, or is kept: must stay a node
    cdef int32_t n_fed           # symbols of the target before this one are fed
    cdef dict controls           # node of the source -> its control inputs, if it has any
    cdef int mark(self, bint waits) except -1
    cdef int32_t producer(self, int32_t symbol) noexcept  # in the source; ABSENT for what is fed
    cdef bint skip(self, int32_t node) except -1      # whether the node is not needed
    cdef int32_t copy(self, int32_t node) except -1   # the node of the target
    cdef int replace(self, int32_t node, int32_t symbol) except -1  # its output by a symbol
    cdef int note(self, int32_t node, int32_t successor) except -1  # it runs in the node's place
    cdef object result(self)     # the new Subgraph

cdef int set_spec(SymbolicGraph graph, int32_t symbol, Spec spec) except -1

cdef void located_as(SymbolicGraph graph, int32_t node, SymbolicGraph source,
                     int32_t other) noexcept   # as if it were built where the other was

cdef inline Spec spec_at(SymbolicGraph graph, int32_t symbol):
    return <Spec>graph.symbols[symbol].spec
