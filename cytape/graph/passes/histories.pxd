# A loop, and the one that keeps what the first's gradient reads, made one loop.

from cytape.ops.calls.symbolic cimport SymbolicGraph
from libc.stdint cimport int32_t

cdef bint is_history(SymbolicGraph graph, int32_t node) except -1
