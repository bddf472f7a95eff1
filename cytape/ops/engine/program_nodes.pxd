# The gradients of an elementwise op in a graph: the steps of its partials' programs, each a node.

from cytape.core.vspace cimport BackwardCall
from libc.stdint cimport int32_t

from cytape.ops.calls.symbolic cimport SymbolicGraph

from .partials_op cimport PartialsOp

cdef dict op_by_ufunc  # by the NumPy functions that programs call

# Append what gives the gradients of a call; False, with nothing done, if that is not to be done so.
cdef bint append_gradients(PartialsOp op, BackwardCall* call, SymbolicGraph graph) except -1
