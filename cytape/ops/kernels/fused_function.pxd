# FusedFunction: a function of elements, made of ufuncs, that runs over blocks that fit into the L1
# cache. NumPy would make a pass over memory, and a temporary array, for each ufunc.

from numpy cimport ndarray

from .partial_program cimport Program

cdef class FusedFunction:
    cdef readonly object function
    cdef int n_inputs
    cdef Program program   # None: not traced yet, or kernels cannot do it
    cdef bint is_traced
    cdef object by_program(self, tuple operands)
