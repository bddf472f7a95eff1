# Compiler of plans: from the needed nodes, in order, to instructions and a memory layout.

from libc.stdint cimport int32_t

from .plan_code cimport Code

cdef int compile(Code code, tuple keep) except -1
