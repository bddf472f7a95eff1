# Tensor: the handle that users hold. It names a value; several handles may name the same one. When
# the last goes, the trace of the value's id goes from every tape, whatever else keeps the value.

from .links cimport Link
from .plain_arrays cimport as_ndarray, require_plain
from .value cimport Value

cdef class Tensor:
    cdef Value held
    cdef Link* link      # NULL: it has had no views and is none
    cdef object __weakref__

cdef Tensor new_tensor(Value value)       # the first handle of a new value
cdef void hold(Tensor tensor, Value value) noexcept
cdef Tensor another_handle(Value value)   # one of a value that had handles before
cdef void leave(Tensor tensor) noexcept   # views of it, and what it is one of, are strangers now
cdef int take_on(Tensor tensor, Value value) except -1  # from now on the tensor names this one
