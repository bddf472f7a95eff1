# NumpyFunction: a function of NumPy with a version for tensors.
#
# Parameters are numbered: positional ones, keyword-only ones, *args, **kwargs.

from cpython.ref cimport PyObject

from .elementwise_op cimport vectorcall_t

cdef class NumpyFunction:
    cdef dict __dict__
    cdef vectorcall_t vectorcall
    cdef object ours, theirs
    cdef dict number_of         # of each parameter, by its name
    cdef Py_ssize_t n_required, n_positional
    cdef Py_ssize_t out, rest, others  # numbers of out, *args, **kwargs; -1 if there is none
    cdef unsigned long deciding  # bit i: version for tensors, if parameter i holds one
    cdef dict added              # parameters that NumPy's has not -> their defaults; or None
    cdef int choice(self, PyObject* const* arguments, Py_ssize_t n, tuple keywords) except -1
