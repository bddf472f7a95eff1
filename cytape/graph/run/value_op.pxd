# ValueOp: ops that plans call with Values, say calls of other plans; and the check of fed values.

from cytape.ops.engine.general_op cimport GeneralOp
from cytape.ops.calls.symbolic cimport SymbolicGraph
from cytape.tensor.values.spec cimport Spec
from libc.stdint cimport int32_t

from .plan_code cimport Code

cdef class ValueOp(GeneralOp):
    cpdef list run_values(self, list values, dict attrs)
    cdef list run_node(self, Code code, int32_t node, list values)  # which may be run again

cdef int check_fed(SymbolicGraph graph, tuple feeds, list values) except -1
cdef bint fits(Spec found, Spec spec)
