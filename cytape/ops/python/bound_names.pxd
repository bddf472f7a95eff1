# Bindings: the closures, globals and defaults of functions at the time of a call.

cdef class Bindings:
    cdef readonly dict found
    cdef object f
    cdef bint copies
    cpdef set changed(self)
    cpdef function(self, own=*)

cpdef list values_of(x)
cpdef bint is_own(str package, f)
