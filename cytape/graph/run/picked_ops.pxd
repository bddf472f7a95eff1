# x[rows], x[mask] and what adds into their places, where a plan knows the index: positions are
# looked at once, and no run calls Python.

from cytape.ops.engine.dispatch cimport Op
from libc.stdint cimport int32_t

from .code cimport Code

cdef bint pick(Code code, int32_t node, index) except -1
cdef bint add_picked(Code code, int32_t node, index) except -1
cdef bint gather(Code code, int32_t node, Op op) except -1
cdef bint scatter_add(Code code, int32_t node, Op op) except -1
