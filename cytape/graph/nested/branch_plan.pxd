# Branch plan: a subprogram that runs one of two nested codes.

from cytape.graph.run.plan_code cimport Code
from cytape.ops.calls.dispatch cimport Op
from libc.stdint cimport int32_t

cdef bint emit_branch(Code code, int32_t node, Op op) except -1
