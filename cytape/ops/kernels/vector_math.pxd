# Loops of float64 that are faster than NumPy's, for derivatives of large arrays.
#
# NumPy's maximum and minimum of an array and a number have no vectors.
#
# NumPy's float64 loops call the C library once per element. The vector versions of glibc are
# several times as fast, with errors up to 4 units in the last place. The forward pass uses NumPy's
# loops, so that results agree; derivatives use these.

from .ufunc_loops cimport loop_t

cdef loop_t vector_loop(object ufunc) except? NULL  # for float64; NULL: there is none here
