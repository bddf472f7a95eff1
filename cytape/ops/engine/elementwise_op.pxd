# ElementwiseOp: an elementwise NumPy function, with one partial derivative per input.
#
# The tail of an entry is the op itself if its function is not a ufunc.

from cpython.ref cimport PyObject
from cytape.ops.kernels.ufunc_loops cimport Kernel
from cytape.tensor.values.spec cimport Spec
from cytape.tensor.tensor cimport Tensor
from cytape.tensor.values.value cimport Value

from cytape.ops.calls.symbolic cimport SymbolicGraph

from .partials_op cimport PartialsOp

ctypedef PyObject* (*vectorcall_t)(PyObject* op, PyObject* const* arguments, size_t flags,
                                   PyObject* names) except NULL

cdef class ElementwiseOp(PartialsOp):
    cdef vectorcall_t vectorcall
    cdef Kernel kernel           # None if forward is not a ufunc
    cdef dict result_dtypes      # by the dtypes of the operands
    cdef object result_dtype(self, list inputs)
    cdef object build_call(self, SymbolicGraph graph, x, y, int n)
    cdef object call_any(self, tuple inputs, dict arguments)
    cdef object call3(self, tuple operands)
    cdef Value plain_operand(self, x, Spec other, int position)
    cdef object by_walk(self, PyObject** inputs, int n)
    cdef object finish1(self, Value out, PyObject** inputs)
    cdef object finish2(self, Value out, PyObject** inputs)
