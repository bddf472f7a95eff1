# FusedLoop: what a FusedOp runs. The steps of a group of ops, done block by block on registers, as
# in a Program, so that what one step hands to another stays in the L1 cache. What is used outside
# the group is written to memory, and sums over all elements are made of the blocks' sums, pairwise.
#
#     registers:  operands | results | what lives between steps
#
# All that depends on shapes is worked out before. Operands and results are contiguous and have the
# op's specs; an operand may be broadcast.

from cytape.ops.calls.dispatch cimport Op
from cytape.ops.kernels.partial_program cimport Step
from cytape.ops.kernels.walk cimport MAX_AXES
from cytape.tensor.values.spec cimport Spec
from libc.stdint cimport int32_t
from numpy cimport npy_intp

cdef enum:
    LINE = 64          # bytes of a cache line
    PARTIAL_SUMS = 48  # enough for 2**48 blocks

cdef class FusedLoop(Op):
    cdef readonly tuple operand_specs, result_specs
    cdef readonly Py_ssize_t nbytes   # that are gone through, in and out
    cdef readonly Spec shape          # of every step, of the floats' dtype
    cdef readonly Spec scratch        # memory that a run works in
    cdef Step* steps
    cdef int32_t* sum_results         # per sum: the position of the result
    cdef int32_t* result_places       # the same per result that steps write
    cdef readonly int32_t n_registers  # operands and results among them
    cdef int32_t n_steps, n_operands, n_written, n_sums
    cdef readonly npy_intp block      # elements that are done at a time
    cdef npy_intp spacing             # bytes from one temporary register to the next
    cdef npy_intp size                # elements in one run: all, unless an operand is broadcast
    cdef int n_axes                   # to go along between runs
    cdef npy_intp extents[MAX_AXES]
    cdef npy_intp* outer_strides      # per operand and axis, bytes
    cdef npy_intp* strides            # per register, within a run
    cdef npy_intp* step_strides       # of the arguments of a step's loop, four each
    cdef int32_t* free_from           # per operand: the first step that may write over it
    cdef int32_t* written_by          # per result: the step that writes its floats, or -1
    # Compute the results from the operands, all addresses of contiguous data, without the GIL. The
    # caller provides `scratch`, so that nothing is allocated here. Returns INTERRUPTED by a
    # signal's handler, or 0. As after any kernel trouble() may be raised; `met` gets the floating
    # point flags that each step raised, unless it is NULL.
    cdef int run(self, char** operands, char** results, char* scratch, int* met) noexcept nogil
