# Layout: the memory layout of a plan's values. While a plan is compiled, an address is a kind of
# memory and an offset; a run resolves it.
#
#     0         | pointer     of a constant
#     SMALL     | offset      the part of the arena for values of up to SMALL_BYTES, in slots
#     LARGE     | offset      its other part, a heap that merges adjacent free blocks
#     EXTERNAL  | k, offset   memory set by a run: of fed, fetched or Python-computed values
#     STACKS    | offset      results of loops, each a Stack
#
# Memory is reused when no symbol in it has remaining uses.

from cytape.core.typedefs cimport index_t
from cytape.tensor.values.spec cimport Spec
from libc.stdint cimport int32_t, uint64_t
from numpy cimport NPY_DOUBLE, NPY_FLOAT, npy_intp

cdef enum:
    SMALL_BYTES = 1024
    N_CLASSES = 3 + SMALL_BYTES // 64
    TAG_SHIFT = 60
    NUMBER_SHIFT = 40   # of an external's

cdef enum Memory:
    CONSTANT = 0
    SMALL
    LARGE
    EXTERNAL
    STACKS

cdef int poison  # for debugging: the byte that plans fill their memory with; -1: none

cdef enum PlaceKind:
    NOWHERE = 0  # not computed, or not yet
    PLACED
    UNKNOWN      # of unknown shape: an external without an address until it is computed
    DEFERRED     # zeros with a part, which may be added to another sum instead
    STACKED      # a Stack

cdef struct Place:          # of a symbol
    uint64_t address
    npy_intp nbytes         # as root: of the memory
    int32_t kind
    int32_t root            # the symbol that the memory was taken for
    int32_t uses            # to come
    int32_t claims          # as root: symbols in this memory with remaining uses
    int32_t strides         # position in the pool; -1: contiguous
    int32_t source          # DEFERRED: the symbol that is added
    int32_t slot            # as root: of SMALL memory

cdef struct Slot:           # a piece of SMALL memory
    npy_intp offset
    int32_t next            # vacant one of the same size, or -1

cdef struct Block:
    npy_intp offset, nbytes

cdef struct Stack:          # results of the iterations of a loop, row by row
    char* data
    npy_intp count          # rows
    npy_intp capacity       # bytes; 0: the memory has another owner

cdef class Layout:
    cdef Place* places
    cdef int32_t n_places
    cdef Slot* slots
    cdef index_t n_slots, slots_capacity
    cdef int32_t vacant[N_CLASSES]   # the first vacant slot of each size
    cdef Block* blocks               # free ones of the heap, by offset
    cdef index_t n_blocks, blocks_capacity
    cdef npy_intp small_bytes, large_bytes
    cdef int32_t n_stacks
    cdef npy_intp live, peak         # bytes in use
    cdef int take(self, int32_t symbol, npy_intp nbytes) except -1
    cdef int take_stack(self, int32_t symbol) except -1
    cdef int give_back(self, Place* root) except -1
    cdef int32_t new_slot(self, npy_intp size) except -1
    cdef npy_intp take_block(self, npy_intp nbytes) except -1
    cdef int give_block(self, npy_intp offset, npy_intp size) except -1

cdef void clear_stacks(Stack* stacks, int32_t n) noexcept nogil

cdef bint is_uniform(Spec spec, const npy_intp* strides) noexcept  # one item, repeated

cdef inline bint is_plain_float(Spec spec) noexcept:
    return spec.type_num == NPY_DOUBLE or spec.type_num == NPY_FLOAT


cdef inline int memory_of(uint64_t address) noexcept nogil:
    return <int>(address >> TAG_SHIFT)

cdef inline uint64_t address_in(int memory, npy_intp offset) noexcept nogil:
    return (<uint64_t>memory << TAG_SHIFT) | <uint64_t>offset

cdef inline uint64_t external_address(int32_t number) noexcept nogil:
    return (<uint64_t>EXTERNAL << TAG_SHIFT) | (<uint64_t>number << NUMBER_SHIFT)

cdef inline int32_t external_number(uint64_t address) noexcept nogil:
    return <int32_t>((address >> NUMBER_SHIFT) & 0xfffff)

cdef inline npy_intp offset_of(uint64_t address) noexcept nogil:
    if address >> TAG_SHIFT == EXTERNAL:
        return <npy_intp>(address & ((<uint64_t>1 << NUMBER_SHIFT) - 1))
    return <npy_intp>(address & ((<uint64_t>1 << TAG_SHIFT) - 1))
