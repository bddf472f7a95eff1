# AccumulateOp: a sum of whole arrays and of gradients of parts of arrays. A plan adds each term to
# the part of the result that it belongs to, one after the other.

from cytape.ops.calls.dispatch cimport Op
from cytape.ops.kernels.moves cimport Region
from cytape.tensor.values.spec cimport Spec

# Whether a term can be added to a part of a sum; finds the region.
cdef bint is_part(index, Spec operand, Spec total, Region* region) except -1

cdef class AccumulateOp(Op):
    cdef readonly Spec spec           # of the sum
    cdef readonly tuple operand_specs
    cdef readonly tuple indices       # per operand: index of the part it is added to; None: all
    cdef bint first_is_all            # the first operand has as many elements as the sum
