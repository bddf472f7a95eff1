# ForwardAccumulator: Jacobian-vector products computed while a program runs (forward mode).
#
# a. Tangents of tracked tensors are stored by id. The host reports every op it runs; if an input
#    has a tangent, the tangents of the outputs are computed immediately. The host also reports the
#    deletion of tensors, whose tangents are dropped.
# b. An op without a forward rule uses its backward function, which is linear in the output
#    gradients, say J^T g: recorded on a tape and differentiated with respect to g, with the input
#    tangents t as seed, it gives J t.
# c. Computing a tangent runs ops. A busy flag keeps the accumulator from tracking those.

from .idtable cimport IdTable, idtable_get
from .tape cimport Tape
from .typedefs cimport NO_INDEX, id_t, index_t
from .vspace cimport VSpace

cdef struct Tangent:
    void* gradient   # NULL: the slot is free
    index_t next_free

cdef class ForwardAccumulator:
    cdef VSpace vspace
    cdef readonly bint use_batch   # whether tangents have a leading axis of directions
    cdef IdTable ids
    cdef Tangent* tangents
    cdef index_t n_tangents, tangent_capacity, free_tangent
    cdef bint asks_others          # about ids without a tangent here
    cdef bint accumulating         # the call state
    cdef Tape backward_tape        # ... records a backward function that is being transposed
    cdef list pushed               # call states below

    cdef int store(self, id_t id, void* tangent) except -1  # takes it over; the first is kept
    cdef void* take(self, id_t id) noexcept                 # out of the accumulator; may be NULL
    cdef void* tangent_elsewhere(self, id_t id) noexcept    # a host's tangent of an id, or NULL
    # The tangents (new references) of the outputs of the only op on a tape. Tangents of inputs may
    # be NULL for zero; outputs that are not trainable get none.
    cdef int transpose(self, Tape op_tape, void** tangents, const char* trainable,
                       void** results) except -1
    # Ops that the host runs in between are recorded on the tape of a transposition.
    cdef Tape begin_forwarding(self)
    cdef int end_forwarding(self, Tape tape) except -1
    cdef list transposed(self, op_type, list outputs, input_ids, input_dtypes, list tangents,
                         backward_getter, deleter)


cdef inline void* tangent_of(ForwardAccumulator accumulator, id_t id) noexcept:
    """The tangent of an id, borrowed, or NULL."""
    cdef index_t slot = idtable_get(&accumulator.ids, id) if id >= 0 else NO_INDEX
    if slot == NO_INDEX:
        return accumulator.tangent_elsewhere(id) if accumulator.asks_others else NULL
    return accumulator.tangents[slot].gradient
