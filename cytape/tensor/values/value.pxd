# Value: an immutable array with an id. Handles (Tensors) and tapes share values by reference.
#
# Small data is stored inside the object, larger data in a buffer or in a given ndarray. An ndarray
# of the value is made on request; it is read-only and keeps the value alive.
#
# A symbolic value has no data: it is the result of a node of a graph, its owner.

from cpython.ref cimport PyObject
from cytape.core.typedefs cimport id_t
from libc.stdint cimport int64_t
from numpy cimport ndarray, npy_intp

from .spec cimport Spec

cdef enum:
    INLINE_BYTES = 64        # up to 8 float64
    BYTES_OBJECT = 1 << 14   # up to this size Python's allocator is fastest

cdef class Value:
    # 128 bytes, a size that processors clear fast.
    cdef id_t id
    cdef Spec spec
    cdef char* data
    cdef object owner        # of the data: None if inline, else bytes, a Buffer or an ndarray
    cdef int handles         # Tensors that hold it
    cdef unsigned char contiguous  # in C order
    cdef unsigned char is_part     # NumPy would have made a view of another array
    cdef double[8] inline_data  # INLINE_BYTES, aligned
    cdef object __weakref__  # for tests of lifetimes

cdef inline bint is_symbolic(Value value) noexcept:
    return value.data == NULL


cdef inline int64_t symbol_of(Value value) noexcept:
    """The position of a symbolic value in its graph."""
    return <int64_t>value.inline_data[0]


cdef Value symbolic_value(Spec spec, id_t id, graph, int64_t symbol)
cdef id_t new_id() noexcept
cpdef id_t newest_id() noexcept
cdef Value new_value(Spec spec)             # uninitialised, contiguous, with a new id
cdef Value value_of_array(ndarray array)    # shares the array, which must not change from now on
cdef Value copy_of_array(ndarray array)     # for arrays that may change
cdef ndarray array_of(Value value)          # read-only
cdef str no_value(Value value, str asker, str instead)  # the error's text for a symbolic value
cdef bint is_exclusive(PyObject* x) noexcept  # a Value with one reference and its own data
cdef bint is_uniform(Value value) noexcept  # one item, which zero strides repeat
cdef bint is_one(Value value) noexcept      # a float 1, perhaps repeated by zero strides
cdef void strides_of(Value value, npy_intp* strides) noexcept
cdef bint in_c_order(Spec spec, const npy_intp* strides) noexcept
cdef Value strided_value(Spec spec, char* data, npy_intp* strides, object owner)
cdef Value shown_again(Value value)         # another value in the same memory
