cimport numpy as cnp

cnp.import_array()
cnp.import_ufunc()

cdef dict kernels = {}


cdef class Kernel:
    """The loops of one ufunc."""

    def __cinit__(self, cnp.ufunc ufunc not None):
        cdef int i, j, n_inputs = ufunc.nin
        cdef const char* types
        self.ufunc = ufunc
        for i in range(N_TYPES):
            self.loops[i].function = NULL
        for i in range(ufunc.ntypes):
            types = ufunc.types + i * ufunc.nargs
            for j in range(1, n_inputs):
                if types[j] != types[0]:
                    break
            else:
                if 0 <= types[0] < N_TYPES and self.loops[<int>types[0]].function == NULL:
                    self.loops[<int>types[0]].function = ufunc.functions[i]
                    self.loops[<int>types[0]].data = ufunc.data[i]
                    self.loops[<int>types[0]].out_type = types[n_inputs]


cdef Kernel kernel_of(ufunc):
    found = kernels.get(ufunc)
    if found is None:
        found = kernels[ufunc] = Kernel(ufunc)
    return found
