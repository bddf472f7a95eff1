# OpCall: one call of an op, as its derivative rules see it; and the backward pass by such a rule.

from cytape.core.vspace cimport BackwardCall
from libc.stdint cimport uint64_t

from .dispatch cimport Op

cdef class OpCall:
    # One call, as derivative rules see it.
    cdef readonly Op op
    cdef readonly dict attrs
    cdef readonly tuple needs, output_specs
    cdef readonly object graph
    cdef int node
    cdef tuple input_refs, output_refs
    cdef bint plain             # no recorder is active: rules get ndarrays

cdef int backward_by_rule(Op op, BackwardCall* call, rule, uint64_t kept_outputs, graph,
                          int node) except -1
