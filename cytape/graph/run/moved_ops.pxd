# How plans run ops that only move numbers: by views, or by copies of regions.

from cytape.ops.calls.dispatch cimport Op
from libc.stdint cimport int32_t

from .plan_code cimport Code

cdef bint moved(Code code, int32_t node, Op op) except -1
# Whether ops of one operand, each of the result of the one before, show all that lies in C order.
cdef bint are_views(Code code, list nodes) except -1
cdef bint is_strided_view(Code code, int32_t node) except -1
