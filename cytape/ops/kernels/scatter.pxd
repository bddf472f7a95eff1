# numpy.add.at into zeros: what the transpose of an index with arrays of integers does.
#
# NumPy looks at every index anew, and adds single numbers; here rows are added as they lie in
# memory. There are blocks of `extent` rows, to each of which `count` rows of terms are added.

from cytape.tensor.values.spec cimport Spec
from cytape.tensor.values.value cimport Value
from numpy cimport ndarray, npy_intp

from .ufunc_loops cimport Loop

cdef struct Scatter:
    npy_intp blocks, extent, count, row_size, row_bytes
    npy_intp step    # bytes from term to term
    int n_leading    # axes in front of those of a row
    const npy_intp* places
    char* total
    char* terms
    Loop* add
    int type_num

cdef Value sum_at(tuple shape, index, ndarray terms)  # None where NumPy has to see to it
# The places that an index names in an array of a shape, not all of which need be inside, and which
# blocks and rows these are; None: it is of another kind.
cdef ndarray find_places(tuple shape, index, Scatter* job)
cdef bint is_whole(part)  # a slice of a whole axis
cdef void prepare(Scatter* job, Spec spec, bint is_uniform) noexcept  # for terms of a dtype
cdef int add_all(Scatter* job) noexcept nogil  # False: a place is out of bounds; or NO_MEMORY
