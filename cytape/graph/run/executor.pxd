# Frame: the memory of one run of a plan, and its instructions with absolute addresses. A plan keeps
# one for the next run; concurrent and recursive runs get their own frames.

from cytape.tensor.values.buffer cimport Buffer
from cytape.tensor.values.value cimport Value
from libc.stdint cimport int32_t, uint64_t
from numpy cimport ndarray, npy_intp

from .instructions cimport Instruction
from .plan_code cimport Code
from .plan_layout cimport Stack

cdef struct Patch:          # an operand in external memory
    int32_t instruction
    int32_t operand
    npy_intp offset

cdef class Frame:
    cdef Code code
    cdef Buffer arena
    cdef Instruction* instructions
    cdef Patch* patches          # by external
    cdef int32_t* first_patch    # of each external, and the end
    cdef list objects            # Values, by external
    cdef list runners            # of subprograms
    cdef Stack* stacks
    cdef int32_t n_stacks
    cdef dict errors             # np.geterr(), once a careful run needs it

    cdef int link(self) except -1
    cdef char* resolved(self, uint64_t address) except NULL
    cdef int set_external(self, Py_ssize_t number, Value value) except -1
    cdef list execute(self, list values, trace)
    cdef int fill_memory(self) except -1
    cdef int begin(self, list values) except -1
    cdef int run_all(self, bint careful, trace) except -1
    cdef int step(self, int32_t start, int32_t end, trace) except -1
    cdef int call(self, int32_t node) except -1
    cdef object run_op(self, int32_t node)
    cdef list values_for(self, int32_t node)
    cdef int read(self, int32_t node) except -1
    cdef ndarray stacked(self, int32_t symbol)
    cdef Value repeated(self, int32_t symbol)
    cdef Value shown(self, int32_t symbol, Value fed)
    cdef ndarray argument(self, int32_t symbol, bint copy)
    cdef Value value_argument(self, int32_t symbol)
    cdef int store(self, int32_t symbol, result) except -1
    cdef int report(self, int32_t node, bytearray met) except -1
    cdef list results(self)
