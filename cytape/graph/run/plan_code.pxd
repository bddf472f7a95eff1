# Code: a graph compiled to instructions that compute some of its symbols.
#
#     code   = the instructions, in the order of the nodes, operands as addresses of the layout
#     pool   = geometry of operands: extents and strides
#     spans  = pieces of code: either one call of Python or instructions without any
#
# Externals (memory that the code does not own) are numbered: the fed values, then the fetched ones,
# then results of Python calls.

cimport cython
from cytape.core.typedefs cimport index_t
from cytape.ops.calls.symbolic cimport SymbolicGraph
from cytape.ops.kernels.ufunc_loops cimport Loop
from cytape.ops.kernels.walk cimport Walk
from cytape.tensor.values.spec cimport Spec
from libc.stdint cimport int32_t, uint64_t
from numpy cimport npy_intp

from .instructions cimport Instruction
from .plan_layout cimport Layout, Place

cdef enum:
    N_TEMPORARIES = 64

cdef struct Span:
    int32_t start, end
    bint is_call
    bint release         # whether it releases the GIL


@cython.final
cdef class Code:
    cdef readonly SymbolicGraph graph
    cdef readonly tuple feeds, fetches
    cdef frozenset fed           # the feeds, if Python is called
    cdef Layout layout
    cdef Instruction* code
    cdef npy_intp* lives         # per instruction: bytes of values that are alive while it runs
    cdef index_t n_code, code_capacity
    cdef npy_intp* pool
    cdef index_t n_pool, pool_capacity, last_geometry
    cdef Span* spans
    cdef index_t n_spans, spans_capacity
    cdef readonly bint nested    # run by an instruction of other code
    cdef frozenset owned         # ... numbers of the feeds that it may overwrite
    cdef int n_fresh             # ... so many feeds are set in each run, the others once
    cdef int n_movable           # so many fetches may be left in owned memory
    cdef list moves              # per fetch: the feed in whose memory it is left, or -1
    cdef readonly list subprograms
    cdef dict alone              # executables of nodes, by node and specs of a run
    cdef dict elements           # DEFERRED, at places that a run finds: the transfer, its operands
    cdef npy_intp effort         # in bytes gone through, of all instructions
    cdef bint repeatable         # nothing is called but reads of variables
    cdef int32_t n_externals, n_symbols
    cdef list temporary_specs    # of symbols beyond those of the graph, for the node at hand
    cdef list constants          # kept alive
    cdef dict direct             # symbol -> fetched external that it, or a view of it, is in
    cdef set copied              # ... views that are copied there, to free their bases
    cdef set filled              # ... externals that are computed in place
    cdef set late                # fetches whose memory Python allocates
    cdef dict releases           # call -> externals that are not needed afterwards
    cdef list unneeded           # those of the next call
    cdef readonly npy_intp peak_bytes

    cdef int32_t contiguous(self, int32_t node, int32_t symbol) except -1
    cdef int32_t new_temporary(self, Spec spec) except -1  # with memory
    cdef int32_t new_symbol(self, Spec spec) except -1
    cdef int release_temporaries(self) except -1
    cdef int accumulate(self, int32_t node, Loop* loop, int32_t deferred, int32_t other) except -1
    cdef int settle(self, int32_t symbol) except -1
    cdef int settle_both(self, int32_t x, int32_t y) except -1

    cdef int add_part(self, int32_t node, int32_t deferred, const Place* place, int32_t out,
                      Loop* loop) except -1
    cdef inline Spec spec(self, int32_t symbol):
        if symbol >= self.n_symbols:
            return self.temporary_specs[symbol - self.n_symbols]
        return <Spec>self.graph.symbols[symbol].spec

    cdef int strides_of(self, int32_t symbol, npy_intp* strides) except -1
    cdef int reserve(self, int32_t n) except -1
    cdef int place_output(self, int32_t symbol) except -1
    cdef int place_over(self, int32_t node, int32_t symbol, int32_t x) except -1
    cdef int place_item(self, int32_t symbol) except -1
    cdef bint shows_item(self, int32_t symbol) except -1
    cdef int place_external(self, int32_t symbol, int32_t number) except -1
    cdef int32_t new_external(self) except -1
    cdef int view(self, int32_t symbol, int32_t of, npy_intp offset,
                  const npy_intp* strides) except -1
    cdef bint may_take_over(self, int32_t dying, int32_t count) except -1
    cdef bint is_fetched_memory(self, int32_t number) except -1
    cdef bint take_over(self, int32_t symbol, int32_t dying, int32_t count) except -1
    cdef int drop(self, int32_t symbol) except -1
    cdef int release_claim(self, int32_t root) except -1
    cdef Instruction* next(self, int32_t node, int kind) except NULL
    cdef int32_t push(self, const npy_intp* numbers, int32_t n) except -1
    cdef int32_t linear(self, npy_intp n, npy_intp a, npy_intp b, npy_intp c) except -1
    cdef int join_place(self, Walk* walk, int32_t symbol) except -1
    cdef int emit_walk(self, int32_t node, Walk* walk, const Loop* loop,
                       uint64_t* addresses) except -1
    cdef int emit_tiled(self, int32_t node, Walk* walk, const Loop* loop,
                        uint64_t* addresses) except -1
    cdef int emit_begun(self, int32_t node, Walk* walk, const Loop* loop,
                        uint64_t* addresses) except -1
    cdef int emit_copy(self, int32_t node, Place* place, Spec spec, uint64_t target) except -1
    cdef int emit_operands(self, int32_t node, int kind, op, list symbols, npy_intp work) except -1
    cdef int emit_zero(self, int32_t node, uint64_t target, npy_intp nbytes) except -1
