# Emitter of checked stacks: rows written by a loop, as an array of a known number of rows.

from libc.stdint cimport int32_t

from .plan_code cimport Code

cdef bint unstacked(Code code, int32_t node) except -1
