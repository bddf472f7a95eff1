# Kernels: the typed inner loops of NumPy's ufuncs, called straight from C. They are what NumPy
# itself runs, so results agree to the bit, for every dtype; only the ufunc machinery around them is
# left out.

from numpy cimport npy_intp

cdef enum:
    N_TYPES = 24  # NumPy's type numbers below this have loops: numbers, bool, half
    WORTH_THE_GIL = 1 << 16  # bytes of data for which other threads may run meanwhile

ctypedef void (*loop_t)(char** data, const npy_intp* n, const npy_intp* strides,
                        void* extra) noexcept nogil

cdef struct Loop:
    loop_t function  # NULL: none for inputs of this type
    void* data       # its last argument
    int out_type

cdef class Kernel:
    cdef readonly object ufunc
    cdef Loop[N_TYPES] loops         # by the type number that all inputs share

cdef Kernel kernel_of(ufunc)
