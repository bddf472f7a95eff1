# PartialsOp: derivatives of an elementwise op in both modes, from its partial derivatives. The
# derived class ElementwiseOp has its calls.
#
# A derivative is computed in the first of three ways that applies: by kernel programs, by the
# partials on plain arrays, or, if a recorder is active, by the partials on tensors.

from cpython.ref cimport PyObject
from cytape.core.vspace cimport BackwardCall
from cytape.ops.kernels.partial_program cimport Operands, Program
from cytape.tensor.recording.state cimport TangentRecorder
from cytape.tensor.values.value cimport Value
from libc.stdint cimport int32_t

from cytape.ops.calls.dispatch cimport Kept, Op
from cytape.ops.calls.symbolic cimport SymbolicGraph

cdef class PartialsOp(Op):
    cdef readonly int n_inputs
    cdef readonly tuple partials
    cdef public object together  # function that returns all partials of arrays, or None
    cdef tuple programs          # per partial, None where kernels cannot do it; made at first use
    cdef PyObject* program_of[4]  # MAX_INPUTS; the same, borrowed
    cdef list programs_of_ones   # those for an output's gradient of 1; each made at first use
    # By the inputs whose gradients they compute, one bit each, and a bit for an upstream gradient
    # of ones; made at first use.
    cdef list shared_programs
    cdef list tangent_programs   # by which inputs have a tangent, one bit each; made at first use
    cdef list gradient_tangent_programs  # by partial and registers with a tangent, one bit each
    cdef Kept[4] saves           # MAX_INPUTS; per partial the values it reads: `kept_for`
    cdef int trace_partials(self) except -1
    cdef bint wants(self, BackwardCall* call, int i) except -1
    cdef bint backward_by_programs(self, BackwardCall* call, Value gradient, bint spare) except -1
    cdef int give_by_program(self, BackwardCall* call, Value gradient, Operands* operands, int i,
                             bint spare, bint of_ones) except -1
    cdef PyObject* program_of_ones(self, int i, Operands* operands, void* x) except NULL
    cdef unsigned int give_together(self, BackwardCall* call, Value gradient, Operands* operands,
                                    unsigned int wanted, bint spare, bint of_ones) except? 64
    cdef bint backward_with_tangents(self, BackwardCall* call,
                                     TangentRecorder accumulator) except -1
    cdef int give_with_tangent(self, BackwardCall* call, TangentRecorder accumulator,
                               Operands* operands, int i, Program tangents) except -1
    cdef Program gradient_tangent_program(self, int i, unsigned int present)
    # Add the gradients to the graph that this thread builds; False, with no effect, if the rule
    # must do it.
    cdef bint backward_in_graph(self, BackwardCall* call, SymbolicGraph graph) except -1
    # Append a call of the op to a graph; return the symbol of its output, or -1, with nothing done.
    cdef int32_t append_call(self, SymbolicGraph graph, const int32_t* symbols, int n) except -2
    cdef int backward_by_partials(self, BackwardCall* call, gradient, bint plain) except -1
    cdef int follow(self, Value out, PyObject** inputs, int n) except -1
    cdef bint follow_by_program(self, TangentRecorder accumulator, Value out, PyObject** inputs,
                                void** tangents, int n, unsigned int present) except -1
    cdef Program tangent_program(self, unsigned int present)
