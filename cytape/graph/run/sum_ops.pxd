# Sums, means, products and extrema along axes, as instructions: a result whose strides are 0 along
# the axes that go is added to, multiplied or compared with, as the operand is walked over. All are
# Emitters, as special_ops calls them.

from cytape.ops.engine.dispatch cimport Op
from cytape.tensor.spec cimport Spec
from libc.stdint cimport int32_t

from .code cimport Code

cdef bint total(Code code, int32_t node, Op op) except -1
cdef bint sum_to(Code code, int32_t node, Op op) except -1
cdef bint add_n(Code code, int32_t node, Op op) except -1
cdef bint extremum(Code code, int32_t node, Op op) except -1
cdef bint multiplied(Code code, int32_t node, Op op) except -1
cdef bint accumulated(Code code, int32_t node, Op op) except -1
cdef bint add_terms(Code code, int32_t node, Op op) except -1  # of an AccumulateOp

cdef bint broadcasts(Spec a, Spec b) noexcept
