# Emitters of sums, means, products and extrema along axes, of cumulative sums and products, and of
# sums of many terms. The result of a reduction has strides of 0 along the reduced axes, so that one
# walk over the operand accumulates each element.

from cytape.ops.calls.dispatch cimport Op
from libc.stdint cimport int32_t

from .plan_code cimport Code

cdef bint reduced(Code code, int32_t node, Op op) except -1
cdef bint accumulated(Code code, int32_t node, Op op) except -1  # cumsum, cumprod
cdef bint add_n(Code code, int32_t node, Op op) except -1
cdef bint add_terms(Code code, int32_t node, Op op) except -1  # of an AccumulateOp
