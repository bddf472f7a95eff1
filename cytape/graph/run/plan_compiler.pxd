# Compiling: from the nodes that are needed, in their order, to instructions and a layout of memory.

from libc.stdint cimport int32_t

from .plan_code cimport Code

cdef int compile(Code code, tuple keep) except -1
