from cytape.ops.engine.dispatch cimport Op
from cytape.ops.kernels.loops cimport Kernel
from libc.stdint cimport int32_t, uint64_t

from .code cimport Code

cdef bint is_read(Op op) noexcept
cdef bint emit_special(Code code, int32_t node, Op op) except -1  # False: it has to be called
cdef bint elementwise_of_three(Code code, int32_t node, Kernel kernel) except -1
