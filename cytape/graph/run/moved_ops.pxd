# Emitters of structural ops: views, or copies of regions.

from cytape.ops.calls.dispatch cimport Op
from libc.stdint cimport int32_t

from .plan_code cimport Code

cdef bint moved(Code code, int32_t node, Op op) except -1
# Whether a chain of ops of one operand is a view of a C-ordered operand.
cdef bint are_views(Code code, list nodes) except -1
cdef bint is_strided_view(Code code, int32_t node) except -1
