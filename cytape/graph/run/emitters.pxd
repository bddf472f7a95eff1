from cytape.ops.calls.dispatch cimport Lowering, Op
from libc.stdint cimport int32_t

from .plan_code cimport Code

ctypedef bint (*Emitter)(Code code, int32_t node, Op op) except -1

cdef int emit_by(Lowering lowering, Emitter emitter) except -1
cdef bint emit_special(Code code, int32_t node, Op op) except -1  # False: Python calls the op
