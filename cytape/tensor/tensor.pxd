# Tensor: the user's handle of a value; several handles may share one value. When the last handle is
# released, the trace of the value's id is deleted from every tape, even if the value still exists.

from cytape.tensor.values.plain_arrays cimport as_ndarray, require_plain
from cytape.tensor.values.value cimport Value

from .view_links cimport Link

cdef class Tensor:
    cdef Value held
    cdef Link* link      # NULL: it has had no views and is not a view
    cdef object __weakref__

cdef Tensor new_tensor(Value value)       # the first handle of a new value
cdef void hold(Tensor tensor, Value value) noexcept
cdef Tensor another_handle(Value value)   # one of a value that had handles before
cdef void leave(Tensor tensor) noexcept   # cut the links to its views and its origin
cdef int take_on(Tensor tensor, Value value) except -1  # replace the tensor's value
