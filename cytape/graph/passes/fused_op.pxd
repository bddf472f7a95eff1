# FusedOp: a group of elementwise ops as one op, with one pass over memory. Its calls are compiled
# to the steps of a FusedLoop.

from cytape.ops.calls.dispatch cimport Op

from .fused_loop cimport FusedLoop

cdef enum FusedKind:
    NOT_FUSED
    LOOP_STEP        # a ufunc, with kernel loops
    SELECT_STEP      # numpy.where
    WIDEN_STEP       # a cast of booleans to floats
    SUM_STEP         # of all elements

cdef enum:
    LEAST_BLOCK = 512  # elements

cdef bint is_fused_type(int type_num) noexcept  # of floats; besides there are booleans
cdef int fused_kind(Op op) except -1      # the possible steps for a call of an op
# Whether a call can be a step of a group with floats of this type: its operands and results are
# such floats or booleans.
cdef bint has_step(Op op, int type_num, int n_inputs, int* input_types, int output_type) except -1

cdef class FusedOp(FusedLoop):
    cdef readonly list calls          # (op, attrs, input values, fast) in order
    cdef readonly tuple results       # values: operands first, then one per call
    cdef dict layouts                 # operand -> its strides, if it is not in C order
    cdef list kernels                 # owners of the data of the loops
    cdef list step_ops                # per step
    # Operands whose memory results may overwrite if they have no other readers, ordered by the last
    # step that reads them, see free_from.
    cdef list overwritable
    cdef int compile(self) except -1
