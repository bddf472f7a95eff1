# Walk: iteration over several strided operands at once, one run of elements after the other.
#
# Adjacent axes are merged if all operands allow it, so that runs, each one call of a typed loop,
# are as long as possible.

from cytape.tensor.values.spec cimport Spec
from cytape.tensor.values.value cimport Value
from numpy cimport npy_intp

from .ufunc_loops cimport Loop

cdef enum:
    MAX_AXES = 64     # NumPy's
    MAX_OPERANDS = 13

cdef struct Walk:
    int n_axes                              # outer axes, outermost first
    int n_operands
    npy_intp extents[MAX_AXES]
    npy_intp position[MAX_AXES]
    npy_intp strides[MAX_OPERANDS][MAX_AXES]
    npy_intp length                         # elements in one run
    npy_intp steps[MAX_OPERANDS]            # strides within it
    char* data[MAX_OPERANDS]                # begin of the present run

cdef bint plan(Walk* walk, Spec shape) noexcept
# Find the strides that broadcast an array to a shape; own NULL: C order. False if the shapes do not
# fit.
cdef bint broadcast_strides(Spec spec, const npy_intp* own, int ndim, const npy_intp* dims,
                            npy_intp* strides) noexcept
cdef bint join(Walk* walk, Value value) noexcept
cdef bint join_array(Walk* walk, char* data, Spec spec, const npy_intp* own) noexcept
cdef void join_memory(Walk* walk, char* data, const npy_intp* strides) noexcept
cdef void order_axes(Walk* walk, int operand) noexcept
# Merge axes in place; return the number left. Strides of operand i are at strides + i * pitch.
cdef int merge_axes(int n_axes, npy_intp* extents, int n_operands, npy_intp* strides,
                    int pitch) noexcept
cdef void begin(Walk* walk) noexcept
cdef void run(Loop* loop, Walk* walk, Py_ssize_t nbytes) noexcept  # the result is the last operand
cdef bint proceed(Walk* walk) noexcept nogil
