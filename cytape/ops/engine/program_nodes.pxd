# Gradients of elementwise ops in graphs: each step of a partial's program becomes a node.

from cytape.core.vspace cimport BackwardCall
from libc.stdint cimport int32_t

from cytape.ops.calls.symbolic cimport SymbolicGraph

from .partials_op cimport PartialsOp

cdef dict op_by_ufunc  # by the NumPy functions that programs call

# Append the nodes of a call's gradients; return False, with no effect, if programs do not apply.
cdef bint append_gradients(PartialsOp op, BackwardCall* call, SymbolicGraph graph) except -1
