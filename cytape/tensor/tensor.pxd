# Tensor: the handle that users hold. It names a value; several handles may name the same one. When
# the last goes, the trace of the value's id goes from every tape, whatever else keeps the value.

from .plain_arrays cimport as_ndarray, require_plain
from .value cimport Value

cdef class Tensor:
    cdef Value held
    cdef object __weakref__

cdef Tensor new_tensor(Value value)       # the first handle of a new value
cdef void hold(Tensor tensor, Value value) noexcept
cdef Tensor another_handle(Value value)   # one of a value that had handles before
cdef int take_on(Tensor tensor, Value value) except -1  # from now on the tensor names this one
