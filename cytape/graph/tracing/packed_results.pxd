# Results: the structure that a traced function returned, with symbols in place of tensors.

cdef class Results:
    cdef tuple symbols                    # of its tensors
    cdef object kind                      # list or tuple if it contains only tensors; else None
    cdef list leaves                      # other leaves than tensors; None in place of a tensor
    cdef list places                      # of leaves that are tensors, or slices: three tensors
    cdef bint single
    cdef object structure
    cdef pack(self, list results, converted=*)
