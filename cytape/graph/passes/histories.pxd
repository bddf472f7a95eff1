# Histories: loops that keep residuals for the gradient of an equal loop; both are merged to one.

from cytape.ops.calls.symbolic cimport SymbolicGraph
from libc.stdint cimport int32_t

cdef bint is_history(SymbolicGraph graph, int32_t node) except -1
