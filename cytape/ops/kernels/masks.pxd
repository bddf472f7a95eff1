# Compression x[mask] by masks of all elements, and its transpose. The loops do not branch on the
# mask, since branches would be mispredicted.

from cytape.tensor.values.value cimport Value
from numpy cimport ndarray, npy_bool, npy_intp

cdef bint is_mask(index)                                   # contiguous booleans
# None if NumPy must compute it.
cdef Value chosen(ndarray x, ndarray mask)
cdef Value put_back(ndarray terms, ndarray mask)  # zeros elsewhere

# The same for memory and a known number of chosen items; step 0: one item repeated.
cdef bint is_moved(dtype)  # whether there is a loop for its item size
cdef void choose_items(char* out, const char* items, npy_intp itemsize, const npy_bool* is_chosen,
                       npy_intp size, npy_intp count) noexcept nogil
cdef void put_items(char* out, const char* items, npy_intp itemsize, int step,
                    const npy_bool* is_chosen, npy_intp size, npy_intp count) noexcept nogil
