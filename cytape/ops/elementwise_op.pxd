# ElementwiseOp: a NumPy function of each element, with one partial derivative per input.
#
# refs of an entry: the output's spec; per input its value or spec; the output's value where a
# partial reads that.

from cpython.ref cimport PyObject
from cytape.core.vspace cimport BackwardCall
from cytape.tensor.spec cimport Spec
from cytape.tensor.tensor cimport Tensor
from cytape.tensor.value cimport Value

from .dispatch cimport Op
from .kernels cimport Kernel
from .program cimport MAX_INPUTS, Operands

ctypedef PyObject* (*vectorcall_t)(PyObject* op, PyObject* const* arguments, size_t flags,
                                   PyObject* names) except NULL

cdef class ElementwiseOp(Op):
    cdef vectorcall_t vectorcall
    cdef readonly int n_inputs
    cdef readonly tuple partials
    cdef Kernel kernel           # None: forward is no ufunc
    cdef tuple programs          # per partial, None where kernels cannot do it; made at first use
    cdef bint[3] has_partial     # MAX_INPUTS
    cdef unsigned int[3] saves   # per partial: bit 0 output, bit 1 + i input i
    cdef object call_any(self, tuple inputs, dict arguments)
    cdef Value plain_operand(self, x, Spec other, int position)
    cdef object by_walk(self, x, Value a, y, Value b)
    cdef object finish(self, Value out, Value a, Value b)
    cdef int trace_partials(self) except -1
    cdef int record(self, Value out, PyObject** inputs, int n) except -1
    cdef bint wants(self, BackwardCall* call, int i) except -1
    cdef bint backward_by_programs(self, BackwardCall* call, Value gradient, bint spare) except -1
    cdef int give_by_program(self, BackwardCall* call, Value gradient, Operands* operands, int i,
                             bint spare) except -1
    cdef int backward_by_partials(self, BackwardCall* call, gradient, bint plain) except -1
