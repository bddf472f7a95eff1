# Emitters of ufuncs, casts and selections: one loop over all elements, or a walk over strided and
# broadcast operands. If all operands are uniform, one element is computed.

from cytape.ops.kernels.ufunc_loops cimport Kernel, Loop
from cytape.ops.kernels.walk cimport Walk
from libc.stdint cimport int32_t

from .plan_code cimport Code

cdef bint elementwise(Code code, int32_t node, Kernel kernel) except -1
cdef bint elementwise_of_three(Code code, int32_t node, Kernel kernel) except -1
cdef int apply(Code code, int32_t node, int op, const Loop* loop, int32_t x, int32_t y) except -1
cdef bint apply_to_three(Code code, int32_t node, const Loop* loop, int first) except -1
# Place an output; of_items: all operands are uniform, so the output is, too. Then prepare a walk
# over it; False if it has no elements.
cdef int place_result(Code code, int32_t out, bint of_items) except -1
cdef bint plan_result(Code code, int32_t out, Walk* walk) except -1
