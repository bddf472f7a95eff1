# Emitters of sums, means, products and extrema along axes, of running sums and products, and of
# sums of many terms. A result of a reduction has strides of 0 along its axes, so that one walk over
# the operand adds each element to its sum, or multiplies or compares it.

from cytape.ops.calls.dispatch cimport Op
from libc.stdint cimport int32_t

from .plan_code cimport Code

cdef bint reduced(Code code, int32_t node, Op op) except -1
cdef bint accumulated(Code code, int32_t node, Op op) except -1  # cumsum, cumprod
cdef bint add_n(Code code, int32_t node, Op op) except -1
cdef bint add_terms(Code code, int32_t node, Op op) except -1  # of an AccumulateOp
