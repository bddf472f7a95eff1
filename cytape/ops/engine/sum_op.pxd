# SumOp: sum and mean over axes. Floating point data is summed by the loop of numpy.add, in the
# order of numpy.sum. The gradient is a broadcast view of the upstream gradient.

from cytape.tensor.values.spec cimport Spec
from cytape.tensor.values.value cimport Value
from libc.stdint cimport uint64_t

from .general_op cimport GeneralOp

cdef class SumOp(GeneralOp):
    cdef bint is_mean
    cdef Value reduced(self, Value x, axis, bint keepdims)

cdef bint axes_of(axis, Spec spec, uint64_t* axes) except -1  # one bit each; False: for NumPy
