# Gathers along an axis, as numpy.take, into pooled memory. NumPy would copy read-only indices.

from cytape.tensor.values.spec cimport Spec
from cytape.tensor.values.value cimport Value
from numpy cimport ndarray, npy_intp

cdef enum Mode:  # treatment of indices out of bounds
    RAISE, WRAP, CLIP

# Rows at places of each of `blocks` of `extent` rows; None: a place is out of bounds.
cdef Value rows_at(Spec spec, const char* data, npy_intp blocks, npy_intp extent, ndarray places,
                   Mode mode)
cdef bint are_places(part)  # a contiguous array of NumPy's integers for positions
cdef bint repeats_one_item(ndarray array) noexcept  # by strides of zero
# The same in memory, where blocks of the result are `step` bytes apart; False: out of bounds.
cdef bint copy_rows(char* out, npy_intp step, const char* data, npy_intp blocks,
                    const npy_intp* places, npy_intp count, npy_intp extent, npy_intp row_bytes,
                    Mode mode) noexcept nogil
cdef bint are_inside(const npy_intp* places, npy_intp count, npy_intp extent,
                     Mode mode) noexcept nogil
