# x[mask], for masks of all elements, and the way back: without a branch for each element, for
# which of them are true is hard to predict.

from cytape.tensor.values.value cimport Value
from numpy cimport ndarray, npy_bool, npy_intp

cdef bint is_mask(index)                                   # booleans, as they lie in memory
# None where NumPy has to see to it.
cdef Value chosen(ndarray x, ndarray mask)
cdef Value put_back(ndarray terms, ndarray mask)  # zeros elsewhere

# The same of memory, where there are so many chosen ones; step 0: of one item.
cdef bint is_moved(dtype)  # whether there is a loop for its items
cdef void choose_items(char* out, const char* items, npy_intp itemsize, const npy_bool* is_chosen,
                       npy_intp size, npy_intp count) noexcept nogil
cdef void put_items(char* out, const char* items, npy_intp itemsize, int step,
                    const npy_bool* is_chosen, npy_intp size, npy_intp count) noexcept nogil
