cimport numpy as cnp
from cpython.ref cimport PyObject
from numpy cimport PyUFuncGenericFunction

cnp.import_array()
cnp.import_ufunc()

cdef extern from "numpy/ufuncobject.h":
    # NumPy's own .pxd shows these as Python properties from 2.5 on.
    ctypedef struct UFunc "PyUFuncObject":
        int nin, nargs, ntypes
        PyUFuncGenericFunction* functions
        void** data
        const char* types

cdef dict kernels = {}


cdef class Kernel:
    """The loops of one ufunc."""

    def __cinit__(self, cnp.ufunc ufunc not None):
        cdef UFunc* raw = <UFunc*><PyObject*>ufunc
        cdef int i, j
        cdef const char* types
        self.ufunc = ufunc
        for i in range(N_TYPES):
            self.loops[i].function = NULL
        for i in range(raw.ntypes):
            types = raw.types + i * raw.nargs
            for j in range(1, raw.nin):
                if types[j] != types[0]:
                    break
            else:
                if 0 <= types[0] < N_TYPES and self.loops[<int>types[0]].function == NULL:
                    self.loops[<int>types[0]].function = <loop_t><void*>raw.functions[i]
                    self.loops[<int>types[0]].data = raw.data[i]
                    self.loops[<int>types[0]].out_type = types[raw.nin]


cdef Kernel kernel_of(ufunc):
    found = kernels.get(ufunc)
    if found is None:
        found = kernels[ufunc] = Kernel(ufunc)
    return found
