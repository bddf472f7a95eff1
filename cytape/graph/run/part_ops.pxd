# Emitters of ops that read, add to, write or clear a part of an array.
#
# A region (integers and slices) is a view, or a walk over strides; rows at places are a transfer.
# Updates happen in the array's memory if the update is the last to read it.

from cytape.ops.calls.dispatch cimport Op
from libc.stdint cimport int32_t

from .plan_code cimport Code

cdef bint get_item(Code code, int32_t node, Op op) except -1
cdef bint index_add(Code code, int32_t node, Op op) except -1
cdef bint gather(Code code, int32_t node, Op op) except -1
cdef bint scatter_add(Code code, int32_t node, Op op) except -1
cdef bint update_part(Code code, int32_t node, Op op) except -1
