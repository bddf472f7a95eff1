# Tape: an OpStore that can be differentiated, with methods for Python; the class to cimport or to
# subclass.

from .op_store cimport OpStore
from .typedefs cimport id_t
from .vspace cimport VSpace

cdef class Tape(OpStore):
    cdef readonly bint persistent

    cdef int gradient(self, VSpace vspace, const id_t* targets, Py_ssize_t n_targets, void** seeds,
                      void** infos, const id_t* sources, Py_ssize_t n_sources, bint build_zeros,
                      bint keep, void** results) except -1

cdef object taken(void* gradient)  # passes the reference to the caller; None for NULL
