# Which arrays, and what converts to them, may be combined with tensors and become some: those that
# are nothing but their data.

from numpy cimport ndarray

cpdef ndarray plain_array(x, dtype=*)
cdef ndarray as_ndarray(x)         # of array-likes that are not tensors; no object arrays
cdef int require_plain(x) except -1  # neither masked arrays nor matrices, nor their like
