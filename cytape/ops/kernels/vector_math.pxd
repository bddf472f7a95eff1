# Vector versions of what NumPy computes element by element, for the derivatives of large arrays.
#
# NumPy's loops for the sine and cosine of float64 call the C library once per element. glibc has
# vector versions, several times as fast, with errors up to 4 units in the last place. The forward
# pass keeps to NumPy's results; derivatives, of which there is no NumPy result to agree with, take
# these.

from .ufunc_loops cimport loop_t

cdef loop_t vector_loop(object ufunc) except? NULL  # for float64; NULL: there is none here
