# Scatter-add into zeros, as numpy.add.at: the transpose of an index with arrays of integers.
#
# NumPy adds single numbers; here contiguous rows are added. The result consists of blocks of
# `extent` rows; `count` rows of terms are added to each block.

from cytape.tensor.values.spec cimport Spec
from cytape.tensor.values.value cimport Value
from numpy cimport ndarray, npy_intp

from .ufunc_loops cimport Loop

cdef struct Scatter:
    npy_intp blocks, extent, count, row_size, row_bytes
    npy_intp step    # bytes from term to term
    int n_leading    # axes in front of the row's axes
    const npy_intp* places
    char* total
    char* terms
    Loop* add
    int type_num

cdef Value sum_at(tuple shape, index, ndarray terms)  # None if NumPy must do it
# The places that an index names in an array of a shape, perhaps out of bounds, and the blocks and
# rows of the job; None for another kind of index.
cdef ndarray find_places(tuple shape, index, Scatter* job)
cdef bint is_whole(part)  # a slice of a whole axis
cdef void prepare(Scatter* job, Spec spec, bint is_uniform) noexcept  # for terms of a dtype
cdef int add_all(Scatter* job) noexcept nogil  # False: a place is out of bounds; or NO_MEMORY
# Add terms to one block; False if a place is out of bounds.
cdef bint add_rows(const Scatter* job, char* total, char* terms, const npy_intp* places,
                   npy_intp count) noexcept nogil
