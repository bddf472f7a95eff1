# FusedLoop: the loop of a FusedOp. The steps of a group of ops run block by block on registers, as
# in a Program, so that intermediates stay in the L1 cache. Results that are read outside of the
# group are written to memory; sums over all elements are pairwise sums of the blocks' sums.
#
#     registers:  operands | results | temporaries
#
# Everything that depends on shapes is computed in advance. Operands and results are contiguous and
# have the op's specs; an operand may be broadcast.

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
    cdef readonly Py_ssize_t nbytes   # read and written
    cdef readonly Spec shape          # of every step, of the floats' dtype
    cdef readonly Spec scratch        # memory of a run
    cdef Step* steps
    cdef int32_t* sum_results         # per sum: the position of the result
    cdef int32_t* result_places       # the same per result that steps write
    cdef readonly int32_t n_registers  # operands and results among them
    cdef int32_t n_steps, n_operands, n_written, n_sums
    cdef readonly npy_intp block      # elements per block
    cdef npy_intp spacing             # bytes from one temporary register to the next
    cdef npy_intp size                # elements in one run: all, unless an operand is broadcast
    cdef int n_axes                   # outer axes
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
