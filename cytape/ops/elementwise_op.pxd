# ElementwiseOp: a NumPy function of each element, with one partial derivative per input.
#
# refs of an entry: the output's spec; per input its value or spec; the output's value where a
# partial reads that.

from cpython.ref cimport PyObject
from cytape.core.vspace cimport BackwardCall
from cytape.tensor.tensor cimport Tensor
from cytape.tensor.value cimport Value

from .dispatch cimport Op
from .kernels cimport Kernel

cdef enum:
    MAX_INPUTS = 3

cdef class ElementwiseOp(Op):
    cdef readonly int n_inputs
    cdef readonly tuple partials
    cdef Kernel kernel           # None: forward is no ufunc
    cdef tuple programs          # per partial, None where kernels cannot do it; made at first use
    cdef bint[3] has_partial     # MAX_INPUTS
    cdef unsigned int[3] saves   # per partial: bit 0 output, bit 1 + i input i
    cdef object finish(self, Value out, Value a, Value b)
    cdef int trace_partials(self) except -1
    cdef int record(self, Value out, PyObject** inputs, int n) except -1
    cdef bint wants(self, BackwardCall* call, int i) except -1
    cdef bint programs_apply(self, BackwardCall* call, Value gradient) except -1
    cdef int backward_by_programs(self, BackwardCall* call, Tensor gradient) except -1
    cdef int backward_by_partials(self, BackwardCall* call, gradient, bint plain) except -1
