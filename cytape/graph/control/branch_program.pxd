# A branch in a plan: a subprogram that runs one of two nested programs.

from cytape.graph.run.code cimport Code
from cytape.ops.engine.dispatch cimport Op
from libc.stdint cimport int32_t

cdef bint emit_branch(Code code, int32_t node, Op op) except -1
