# Tensor: the handle that users hold. It names a value; several handles may name the same one. When
# the last goes, the trace of the value's id goes from every tape, whatever else keeps the value.

from .value cimport Value
from numpy cimport ndarray

cdef class Tensor:
    cdef Value held
    cdef object __weakref__

cdef class Operator:
    # What an operator of Tensor calls. The ops, one floor up, derive from it and are installed.
    cdef object call1(self, x)
    cdef object call2(self, x, y)

cdef Tensor new_tensor(Value value)       # the first handle of a new value
cdef void hold(Tensor tensor, Value value) noexcept
cdef Tensor another_handle(Value value)   # one of a value that had handles before
cdef ndarray as_ndarray(x)                # of array-likes that are not tensors; no object arrays
