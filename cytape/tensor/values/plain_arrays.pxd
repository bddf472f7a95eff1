# Test for plain arrays: arrays (and objects that convert to them) whose meaning is fully given by
# their data, so that they can be combined with tensors.

from numpy cimport ndarray

cpdef ndarray plain_array(x, dtype=*)
cdef ndarray as_ndarray(x)         # of array-likes that are not tensors; no object arrays
cdef int require_plain(x) except -1  # neither masked arrays nor matrices, nor their like
