# Emitter of checked stacks: rows written by a loop, as an array of a known number of rows.

from cytape.ops.calls.dispatch cimport Op
from libc.stdint cimport int32_t

from .plan_code cimport Code

cdef bint ensure_shape(Code code, int32_t node, Op op) except -1
