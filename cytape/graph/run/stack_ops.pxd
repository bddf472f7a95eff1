# Stacks of rows, written by loops, as arrays whose number of rows the graph knows.

from cytape.ops.engine.dispatch cimport Op
from libc.stdint cimport int32_t

from .code cimport Code

cdef bint ensure_shape(Code code, int32_t node, Op op) except -1
