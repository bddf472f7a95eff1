# Gradients on their way: what arrived for each tensor, until the last has come.
#
# A host that can sum as it goes does; then a tensor holds one gradient at a time. Else they wait in
# a list for one sum. Either way they are summed in the order in which they came, which is that of
# the ops that sent them, the one that was recorded last first.

from .typedefs cimport index_t
from .vspace cimport VSpace
from libc.stdint cimport int32_t

cdef struct TensorState:  # 32 bytes: two to a cache line
    void* gradient    # the first that arrived, or the sum of those that did
    index_t more      # the latest of the others, linked backwards in Arrivals.extra
    index_t producer  # the op that made the tensor, or NO_INDEX
    int32_t count     # gradients here
    int32_t pending   # needed ops that use the tensor and had not their turn yet
    char known        # to the tape
    char is_source

cdef struct Extra:
    void* gradient
    index_t previous

cdef struct Arrivals:
    TensorState* tensors  # by slot
    Extra* extra
    index_t n_extra, extra_capacity, free_extra
    void** terms          # gradients to be summed
    index_t term_capacity

# Add to what arrived for a tensor; takes over the reference, also after an error.
cdef int deliver(VSpace vspace, Arrivals* arrivals, index_t slot, void* gradient) except -1
# Sum what arrived for a tensor; the arrivals keep owning the sum.
cdef void* aggregate(VSpace vspace, Arrivals* arrivals, index_t slot) except NULL
cdef void drop_gradients(VSpace vspace, Arrivals* arrivals, index_t slot) noexcept
cdef void release_arrivals(Arrivals* arrivals) noexcept
