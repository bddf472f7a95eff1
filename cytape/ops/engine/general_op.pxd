# GeneralOp: an op with a derivative rule per mode.

from cpython.ref cimport PyObject
from cytape.core.vspace cimport BackwardCall
from cytape.tensor.recording.state cimport TangentRecorder
from cytape.tensor.values.value cimport Value

from cytape.ops.calls.dispatch cimport Op
from cytape.ops.calls.op_call cimport OpCall
from cytape.ops.calls.symbolic cimport SymbolicGraph

cdef class GeneralOp(Op):
    # The tail of an entry: the user's line if the op has no vjp, then the attributes.
    cdef readonly object vjp, jvp
    cdef readonly object saved_inputs   # positions, None: all
    cdef readonly object saved_outputs
    cdef readonly bint differentiable   # False: gradients end here, nothing is recorded
    cdef readonly object shape_rule     # specs of the inputs -> specs of the outputs, or None
    cdef readonly object batched        # the jvp for tangents with a leading axis, or None
    cdef readonly object optional_tangents  # inputs whose tangent the jvp takes as None
    cdef public bint is_users           # not one of cytape's own
    cdef int tell(self, tuple inputs, list outputs, dict attrs) except -1
    cdef int record_few(self, PyObject** inputs, int n, Value out, dict attrs) except -1
    cdef int tell_few(self, PyObject** inputs, int n, Value out, dict attrs) except -1
    # None if a rule must be called.
    cdef Value tangent_by_loops(self, list inputs, list tangents, dict attrs, bint batched)
    # The backward pass in C when no recorder is active; False, with nothing done, if there is none.
    cdef bint backward_by_loops(self, BackwardCall* call) except -1
    cdef bint backward_with_tangents(self, BackwardCall* call,
                                     TangentRecorder accumulator) except -1
    # Add the gradients to the graph that this thread builds; False, with nothing done, if that is
    # not to be done in C.
    cdef bint backward_in_graph(self, BackwardCall* call, SymbolicGraph graph) except -1
    cdef int backward_by_vjp(self, BackwardCall* call) except -1
    cdef object in_batch(self, list inputs, list outputs, dict attrs, list operands, list mapped)
    cdef OpCall view_of(self, list inputs, list outputs, dict attrs, list tangents, bint plain)
    cdef int follow_by_loops(self, list inputs, Value out, dict attrs) except -1

# The tangent of an input that has none, where a rule takes no None; batched: of all directions.
cdef object zeros_like(Value value, list tangents, bint plain, bint batched)
