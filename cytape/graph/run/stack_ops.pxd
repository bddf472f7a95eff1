# Stacks of rows, which loops leave, as arrays of a number of rows that the graph knows.

from cytape.ops.engine.dispatch cimport Op
from libc.stdint cimport int32_t

from .code cimport Code

cdef bint ensure_shape(Code code, int32_t node, Op op) except -1
