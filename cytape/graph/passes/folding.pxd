# Constant folding: results of constants, and ops that leave a tensor unchanged.

from cytape.ops.calls.symbolic cimport SymbolicGraph
from cytape.tensor.values.spec cimport Spec
from cytape.tensor.values.value cimport Value
from libc.stdint cimport int32_t

from .rewriting cimport Rewriting

# The symbol of the target that equals the result of a node of the source, ABSENT if there is none.
cdef int32_t known_result(Rewriting rewriting, int32_t node) except -2
# Replace a node that computes parts or views of a uniform value; False for other nodes.
cdef bint parts_known(Rewriting rewriting, int32_t node) except -1
cdef int32_t neutral(Rewriting rewriting, int32_t node, Spec spec) except -2  # spec: the output's
cdef int32_t folded(Rewriting rewriting, int32_t node) except -2
# The value of a symbol with equal elements: a constant of one element, or one broadcast; or None.
cdef Value uniform(SymbolicGraph graph, int32_t symbol)
cdef Value constant_at(SymbolicGraph graph, int32_t symbol)  # the value of a constant, or None
