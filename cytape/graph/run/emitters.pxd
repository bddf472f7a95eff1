from cytape.ops.calls.dispatch cimport Op
from libc.stdint cimport int32_t

from .plan_code cimport Code

cdef bint is_read(Op op) noexcept
cdef bint emit_special(Code code, int32_t node, Op op) except -1  # False: Python calls the op
