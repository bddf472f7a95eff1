# AccumulateOp: a sum whose terms are added where they belong, one after the other: whole arrays,
# and the gradients of what was read from parts of an array, which are zero elsewhere.

from cytape.ops.engine.dispatch cimport Op
from cytape.ops.kernels.loops cimport Loop
from cytape.ops.kernels.moves cimport Region
from cytape.tensor.spec cimport Spec
from libc.stdint cimport int32_t
from numpy cimport npy_intp

cdef bint is_part(index, Spec operand, Spec total, Region* region) except -1

cdef class AccumulateOp(Op):
    cdef readonly Spec spec           # of the sum
    cdef readonly tuple operand_specs
    cdef readonly tuple indices       # per operand: where it is added; None: everywhere
    # How to go through the terms, one row each: offset in the sum, elements in a run, strides
    # within it of sum and term; number of axes between runs; per axis its extent and both strides.
    cdef npy_intp* rows
    cdef int32_t* row_starts
    cdef int32_t n_operands
    cdef Loop* loop
    cdef bint first_is_all            # the first operand is contiguous and everywhere
    # Compute the sum from the operands, all addresses of contiguous data; the GIL is not needed.
    # Returns INTERRUPTED, or 0. As after any kernel trouble() may be raised; `report` then adds
    # with NumPy, for its warnings.
    cdef int run(self, char** operands, char* result) noexcept nogil
