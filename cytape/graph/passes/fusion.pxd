# Fusion: groups of elementwise ops, written as one op each into a new graph.

from cytape.graph.passes.fused_op cimport FusedOp
from cytape.ops.calls.symbolic cimport SymbolicGraph
from libc.stdint cimport int32_t

from .fusion_groups cimport FusionGroups
from .rewriting cimport Rewriting

cdef class Fusion:
    cdef FusionGroups groups
    cdef Rewriting rewriting
    cdef SymbolicGraph source
    cdef dict ops               # those made, by what they do
    cdef void* memory
    # Per node:
    cdef int32_t* order         # the members of the group being built, in the order of their steps
    cdef int32_t* pending
    cdef int32_t* stack
    cdef char* emitted          # by the node that stands for the group
    cdef char* placed           # in `order`
    # Per symbol:
    cdef int32_t* numbers       # in the group being built
    cdef int32_t* number_groups  # and which that is

    cdef int emit_all(self) except -1
    cdef int emit(self, int32_t node) except -1
    cdef int32_t demand(self, int32_t node, int32_t top) except -1
    cdef int32_t push(self, int32_t node, int32_t top) noexcept
    cdef int32_t put_in_order(self, int32_t group) except -1
    cdef int emit_group(self, int32_t group) except -1
    cdef int32_t number(self, int32_t symbol, int32_t n_operands) noexcept
    cdef int add(self, int32_t group, FusedOp op, list operands, list results) except -1
