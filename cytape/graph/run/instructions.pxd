# Instructions of plans, and the loop that runs them without Python.
#
#     { MULTIPLY_D, node 7, data: the inputs, then the output, ... }
#
# Operands are addresses. Further arguments of a typed loop are in the pool of the plan, at position
# `geometry`:
#
#     LOOP      n, one stride per operand
#     WALK      n_axes, n_operands, n, one stride per operand (the inner loop, as above); then
#               n_axes extents, and n_axes strides per operand
#     PRODUCT   the dimensions and the strides of matmul's loop
#     COPY, ZERO  none: `work` is the number of bytes

from cytape.ops.kernels.ufunc_loops cimport Kernel, Loop
from cytape.tensor.values.spec cimport Spec
from libc.stdint cimport int32_t
from numpy cimport npy_intp

cdef enum Kind:
    ADD_D = 0, SUBTRACT_D, MULTIPLY_D, DIVIDE_D, NEGATIVE_D, SQUARE_D   # one float64
    ADD_F, SUBTRACT_F, MULTIPLY_F, DIVIDE_F, NEGATIVE_F, SQUARE_F       # one float32
    ADD_L, SUBTRACT_L, MULTIPLY_L                                       # one int64
    LESS_D, LESS_EQUAL_D, GREATER_D, GREATER_EQUAL_D, EQUAL_D, NOT_EQUAL_D
    LESS_L, LESS_EQUAL_L, GREATER_L, GREATER_EQUAL_L, EQUAL_L, NOT_EQUAL_L
    LOOP
    WALK
    PRODUCT
    COPY
    ZERO
    FUSED         # `loop` is a FusedOp; `geometry` operands, results and scratch memory
    CONTROL       # ... in code a Subprogram, in a frame its Runner; operands and results
    OPERANDS      # follows one of these: further operands
    CALL          # of Python

cdef enum:
    N_OPERANDS = 4
    MANY_OPERANDS = 64
    N_DIRECT = 6  # the ops of the first two lines above; comparisons follow
    N_INTEGER = 3  # ... of which the first exist for integers
    SHORT = 64    # elements for which the loops here are the fastest

cdef struct Instruction:
    int32_t kind
    int32_t node
    char* data[N_OPERANDS]
    const Loop* loop
    npy_intp work       # bytes read and written
    int32_t geometry

# Subprogram: code that an instruction runs, once or repeatedly (a body). Runner: its state in one
# frame.
cdef class Subprogram:
    cdef readonly Py_ssize_t nbytes      # of a runner
    cdef readonly Py_ssize_t peak_bytes  # of values in it
    cdef readonly Py_ssize_t effort      # in bytes read and written, of an iteration or a branch
    cdef Runner new_runner(self)

cdef class Runner:
    cdef bint careful   # operands are kept as they are: the run may be repeated
    cdef list memory(self)  # frames and buffers
    cdef int run(self, char** data) noexcept nogil  # as run_span

# These return NO_MEMORY or INTERRUPTED, or 0. `met` is for the steps of a FusedOp, or NULL.
cdef int run_span(const Instruction* code, Py_ssize_t start, Py_ssize_t end,
                  const npy_intp* pool) noexcept nogil
cdef int run_looped(const Instruction* at, int* met) noexcept nogil
cdef int direct_op(Kernel kernel) except -2       # its position among the direct ones, or -1
cdef int scalar_kind(int op, int type_num) noexcept         # of a direct op, or -1
cdef const Loop* short_loop(int op, int type_num) noexcept  # of a direct op, or NULL
# The raised floating-point flags; the same in NumPy's numbering; whether NumPy's settings report
# them.
cdef int found_trouble() noexcept
cdef int numbered(int found) noexcept
cdef bint matters(int found, dict errors)

cdef Spec converted_spec(Spec spec, int type_num)
cdef Loop* loop_of(Kernel kernel, int type_num, Spec result) noexcept
cdef bint is_plain_integer(Kernel kernel, int type_num) noexcept
cdef int compared_type(Spec x, Spec y) except -2
cdef const Loop* mean_loop(int type_num) noexcept  # divides by the stride of a third operand
cdef const Loop* cast_loop(int from_type, int to_type) noexcept  # NULL: there is none
