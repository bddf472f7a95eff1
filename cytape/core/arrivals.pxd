# Arrivals: the gradients that have arrived for each tensor, until the last one has.
#
# A host that can add in place does so on arrival, so that a tensor has one gradient at a time.
# Otherwise the gradients are kept in a list and summed at the end. Both add in the order of
# arrival, the reverse of the order in which the consumers were recorded.

from .typedefs cimport index_t
from .vspace cimport VSpace
from libc.stdint cimport int32_t

cdef struct TensorState:  # 32 bytes: two to a cache line
    void* gradient     # the first gradient, or the running sum
    index_t more       # the latest of the others, linked backwards in Arrivals.extra
    index_t producer   # the op that made the tensor, or NO_INDEX
    int32_t count      # gradients stored
    int32_t pending    # needed ops that use the tensor and have not run yet
    char known         # to the tape
    char is_source

cdef struct Extra:
    void* gradient
    index_t previous

cdef struct Arrivals:
    TensorState* tensors  # by slot
    Extra* extra
    index_t n_extra, extra_capacity, free_extra
    void** terms          # gradients of one sum
    index_t term_capacity

# Add a gradient to those that arrived for a tensor; takes over the reference, also after an error.
cdef int deliver(VSpace vspace, Arrivals* arrivals, index_t slot, void* gradient) except -1
# Sum the gradients that arrived for a tensor; the arrivals keep owning the sum.
cdef void* aggregate(VSpace vspace, Arrivals* arrivals, index_t slot) except NULL
cdef void drop_gradients(VSpace vspace, Arrivals* arrivals, index_t slot) noexcept
cdef void release_arrivals(Arrivals* arrivals) noexcept
