# Plain arrays: arrays, and objects that convert to arrays, without other information than their
# data, so that they can be combined with tensors.

from numpy cimport ndarray

cpdef ndarray plain_array(x, dtype=*)
cdef ndarray as_ndarray(x)         # of array-likes that are not tensors; no object arrays
cdef int require_plain(x) except -1  # raises for masked arrays, matrices and similar classes
