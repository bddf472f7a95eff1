# Value: an immutable array with an id. Handles (Tensors) and tapes share values by reference.
#
# Small data lies inside the object, middling data in a buffer of its own, big data in an ndarray.
# An ndarray of the others is made when somebody asks; it is read-only and keeps the value alive.

from cytape.core.typedefs cimport id_t
from numpy cimport ndarray

from .spec cimport Spec

cdef enum:
    INLINE_BYTES = 64        # up to 8 float64
    BUFFER_BYTES = 1 << 14   # above this an ndarray's own cost does not matter

cdef class Value:
    cdef id_t id
    cdef Spec spec
    cdef char* data
    cdef object owner        # of the data: None if inline, bytes (a mere buffer) or an ndarray
    cdef int handles         # Tensors that hold it
    cdef bint contiguous     # in C order, without gaps
    cdef double[8] inline_data  # INLINE_BYTES, aligned
    cdef object __weakref__  # for whoever wants to know what is kept

cdef id_t new_id() noexcept
cdef Value new_value(Spec spec)             # uninitialised, contiguous, with a new id
cdef Value value_of_array(ndarray array)    # shares the array, which must not change from now on
cdef Value copy_of_array(ndarray array)     # for arrays that may change
cdef ndarray array_of(Value value)          # read-only
