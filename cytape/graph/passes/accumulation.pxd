# Accumulation: sums of gradients of parts, which are added in place instead of to zeros first.

from cytape.ops.calls.dispatch cimport Op
from cytape.ops.calls.symbolic cimport SymbolicGraph
from cytape.tensor.values.spec cimport Spec
from libc.stdint cimport int32_t

from .rewriting cimport Rewriting

cdef class Accumulation:
    cdef Rewriting rewriting
    cdef SymbolicGraph source
    cdef void* memory
    # Per node:
    cdef int32_t* inner      # an addition: the addition that it continues, or ABSENT
    cdef int32_t* parts      # number of terms so far that are gradients of parts
    cdef char* is_addition   # of two tensors that have the sum's spec
    cdef char* continued     # by another addition, and not used otherwise
    cdef char* needed
    cdef char* has_placed    # one of its terms has an index that is known only at run time
    cdef int32_t* uses       # per symbol
    cdef int count_uses(self) noexcept
    cdef int find_chains(self) except -1
    cdef int mark_needed(self) except -1
    cdef int emit_sum(self, int32_t node) except -1
    cdef int32_t emit_terms(self, int32_t node, int32_t total, list terms) except -1
    cdef int32_t emit_op(self, int32_t node, Op op, list symbols) except -1
    cdef list terms_of(self, int32_t node)        # (symbol, index), left to right
    cdef tuple term_of(self, int32_t symbol, int32_t node)
    cdef int32_t producer(self, int32_t symbol) noexcept
    cdef bint may_wait(self, Spec spec, int32_t node, int32_t other) noexcept
    cdef bint is_root(self, int32_t node) noexcept
    cdef bint is_of_part(self, int32_t symbol) except -1
    cdef bint is_cleared(self, int32_t symbol) except -1
    cdef bint is_placed(self, int32_t symbol) except -1
    cdef int n_places(self, int32_t node) except -2

# How many operands of an op that adds a part to zeros are part of its index. The part is before
# them; the shape or length of the zeros is behind them, or an attribute.
cdef int n_places_of(SymbolicGraph graph, int32_t node) except -1
