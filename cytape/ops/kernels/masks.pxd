# x[mask], for masks of all elements, and the way back: without a branch for each element, for
# which of them are true is hard to predict.

from cytape.tensor.value cimport Value
from numpy cimport ndarray

cdef bint is_mask(index)                                   # booleans, as they lie in memory
# None where NumPy has to see to it.
cdef Value chosen(ndarray x, ndarray mask)
cdef Value put_back(ndarray terms, ndarray mask)  # zeros elsewhere
