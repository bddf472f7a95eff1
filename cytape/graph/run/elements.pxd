# x[i], where i has no value yet: a block of memory, found when the index is known, that is copied
# or added to. Both are Emitters, as special_ops calls them.

from cytape.ops.engine.dispatch cimport Op
from libc.stdint cimport int32_t

from .code cimport Code

cdef bint get_element(Code code, int32_t node, Op op) except -1
cdef bint add_element(Code code, int32_t node, Op op) except -1
