# Bindings: the closures and globals of functions as a call found them.

cdef class Bindings:
    cdef readonly dict found
    cdef object f
    cdef bint copies
    cpdef set changed(self)
    cpdef function(self, own=*)

cpdef list values_of(x)
