# Calls of ops recorded on a tape, with the shapes and dtypes of their operands and results.

from cytape.core.op_store cimport OpStore
from cytape.core.typedefs cimport index_t

cdef object ref_at(OpStore store, index_t op, index_t i)  # a ref of a live op, or None
