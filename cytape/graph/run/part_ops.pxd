# How plans run ops that update a part of an array, or take a copy of one: in the array's memory
# where nobody is to read it any more.

from cytape.ops.engine.dispatch cimport Op
from libc.stdint cimport int32_t

from .code cimport Code

cdef bint update_part(Code code, int32_t node, Op op) except -1
# A copy of a region of an operand that lies as `strides` say; False, with nothing done: see NumPy.
cdef bint copy_region(Code code, int32_t node, index) except -1
# Whether an operand is what an update returned, whose memory the next one is to have.
cdef bint is_updated(Code code, int32_t symbol) except -1
