# VSpace: the operations on gradients that a host provides to a tape.
#
# A tape treats a gradient, an output info and a saved value as a void*. A host in Cython subclasses
# VSpace and overrides the C methods; a host in Python subclasses it and overrides the Python
# methods, which the C methods call by default (every void* is then a PyObject*).

from .typedefs cimport id_t
from libc.stdint cimport int32_t, int64_t, uint64_t

ctypedef void (*release_t)(void** refs, int32_t n_refs, object keeper) noexcept

cdef struct OpKind:
    # Common part of all entries of one op type, embedded in an OpType. Lives as long as any entry.
    uint64_t optional_gradients  # see takes_none
    release_t release            # releases the refs of one entry; called exactly once
    void* owner                  # the OpType (borrowed); the host finds its rule through it

cdef inline bint takes_none(OpKind* kind, Py_ssize_t output) noexcept nogil:
    """Return whether backward accepts NULL for an output instead of zeros.

    Each of the first 64 outputs has a bit; the others are optional if all of these are.
    """
    if output >= 64:
        return not ~kind.optional_gradients
    return kind.optional_gradients >> output & 1

cdef class OpType:
    cdef OpKind kind
    cdef readonly str name

cdef enum:
    NEEDED = 1  # the gradient may matter: the input is on the tape or among the sources
    WANTED = 2  # it will be returned: the input is both

cdef struct BackwardCall:
    OpKind* kind
    void** refs               # output infos first, then the host's saved values; borrowed
    int32_t n_refs
    int32_t n_outputs
    int32_t n_inputs
    id_t output_id            # of an output whose gradient arrived
    void** output_gradients   # NULL: none arrived; the call takes over the references
    const char* needed        # per input: 0, NEEDED or WANTED
    void** arrived            # per input: the one gradient that arrived for it so far, or NULL
    # All NULL; the call stores new references. It leaves NULL if there is no gradient, or if it
    # added it in place to the one in `arrived`, which must have no other owner.
    void** input_gradients

cdef class VSpace:
    cdef bint deletes  # a subclass overrides delete_gradient
    cdef int64_t size(self, void* gradient) except -1
    cdef void* add(self, void** gradients, Py_ssize_t count) except NULL  # takes the references
    # Return total + term and take both references (after an error only the one of `term`). NULL:
    # no reference is taken, and all gradients are kept for one sum at the end.
    cdef void* accumulate(self, void* total, void* term) except? NULL
    cdef void* ones(self, void* info) except NULL
    cdef void* zeros(self, void* info) except NULL
    cdef int backward(self, BackwardCall* call) except -1
    # Return the gradient as an object with an id; takes over the reference.
    cdef void* as_target(self, void* gradient) except NULL
    cdef id_t id_of(self, void* gradient) except -1
    cdef void* info_of(self, void* gradient) except NULL                  # a new reference
    cdef int retain(self, void* gradient) except -1  # after an error the caller holds no more
    cdef void release(self, void* gradient) noexcept


cdef class Backward:
    # The backward object of an op recorded from Python; its __dealloc__ calls the deleter.
    cdef OpType op_type
    cdef list infos
    cdef readonly object function
    cdef object deleter

cdef void release_backward(void** refs, int32_t n_refs, object keeper) noexcept
