# Kernels: the typed inner loops of NumPy's ufuncs, called straight from C. They are what NumPy
# itself runs, so results agree to the bit, for every dtype; only the ufunc machinery around them is
# left out.

from numpy cimport PyUFuncGenericFunction, npy_intp

cdef enum:
    N_TYPES = 24  # NumPy's type numbers below this have loops: numbers, bool, half

cdef struct Loop:
    PyUFuncGenericFunction function  # NULL: none for inputs of this type
    void* data
    int out_type

cdef class Kernel:
    cdef readonly object ufunc
    cdef Loop[N_TYPES] loops         # by the type number that all inputs share

cdef Kernel kernel_of(ufunc)
