# Walk: operands of different strides gone through together, one run of elements after the other.
#
# Axes along which all operands proceed alike are taken as one, so that the runs, which the typed
# loops do without further ado, are as long as can be.

from cytape.tensor.spec cimport Spec
from cytape.tensor.value cimport Value
from numpy cimport npy_intp

from .loops cimport Loop

cdef enum:
    MAX_AXES = 64     # NumPy's
    MAX_OPERANDS = 11

cdef struct Walk:
    int n_axes                              # those left to step along, outermost first
    int n_operands
    npy_intp extents[MAX_AXES]
    npy_intp position[MAX_AXES]
    npy_intp strides[MAX_OPERANDS][MAX_AXES]
    npy_intp length                         # elements in one run
    npy_intp steps[MAX_OPERANDS]            # strides within it
    char* data[MAX_OPERANDS]                # where the run at hand begins

cdef bint plan(Walk* walk, Spec shape) noexcept
cdef bint join(Walk* walk, Value value) noexcept
cdef void join_memory(Walk* walk, char* data, const npy_intp* strides) noexcept
cdef void order_axes(Walk* walk, int operand) noexcept
cdef void begin(Walk* walk) noexcept
cdef void run(Loop* loop, Walk* walk, Py_ssize_t nbytes) noexcept  # the result is the last operand
cdef bint proceed(Walk* walk) noexcept nogil
