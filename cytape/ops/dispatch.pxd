# Op: one declaration made runnable. Calling it computes, and records on the recorders of the thread
# that follow an input. What an entry keeps (its refs) is specs and values, never handles.

from cpython.ref cimport PyObject
from cytape.core.vspace cimport BackwardCall, OpType
from cytape.tensor.spec cimport Spec
from cytape.tensor.tensor cimport Operator, Tensor
from cytape.tensor.value cimport Value

from .kernels cimport Kernel
from .program cimport Program

cdef enum:
    MAX_ELEMENTWISE_INPUTS = 3

cdef class Op(Operator):
    cdef OpType op_type          # name, and what the tape knows of the op
    cdef readonly object forward # the plain NumPy function
    cdef int backward(self, BackwardCall* call) except -1

cdef class ElementwiseOp(Op):
    # refs: output spec; per input its value, or its spec where no partial reads it; the output's
    # value where a partial reads that.
    cdef readonly int n_inputs
    cdef readonly tuple partials
    cdef Kernel kernel           # None: forward is no ufunc
    cdef tuple programs          # per partial, None where kernels cannot do it; made at first use
    cdef bint[3] has_partial
    cdef unsigned int[3] saves   # per partial: bit 0 output, bit 1 + i input i
    cdef object finish(self, Value out, Value a, Value b)
    cdef int trace_partials(self) except -1
    cdef int record(self, Value out, PyObject** inputs, int n) except -1
    cdef bint wants(self, BackwardCall* call, int i) noexcept
    cdef bint programs_apply(self, BackwardCall* call, Value gradient) except -1
    cdef int backward_by_programs(self, BackwardCall* call, Tensor gradient) except -1
    cdef int backward_by_partials(self, BackwardCall* call, gradient, bint plain) except -1

cdef class GeneralOp(Op):
    # refs: output specs; per input its value or spec; per output its value or None; the attributes.
    cdef readonly object vjp, jvp
    cdef readonly object saved_inputs   # positions, None: all
    cdef readonly tuple saved_outputs
    cdef readonly bint linear
    cdef readonly bint differentiable   # False: gradients end here, nothing is recorded
    cdef int record(self, inputs, list outputs, dict attrs) except -1

cdef class CustomOp(Op):
    # refs: output specs, input specs, the Backward with a Python function.
    pass

cdef class OpCall:
    # What a derivative rule sees of one call.
    cdef readonly Op op
    cdef readonly dict attrs
    cdef readonly tuple needs, input_specs, output_specs
    cdef tuple input_refs, output_refs
    cdef bint plain             # nobody records: rules get ndarrays

cdef Value value_of(x, bint copy)
