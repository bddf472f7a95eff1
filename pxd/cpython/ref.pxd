# The declarations of Cython's own file that the package uses.

from .object cimport PyObject, PyTypeObject

cdef extern from "Python.h":
    void Py_INCREF(object)
    void Py_DECREF(object)
    void Py_XINCREF(PyObject*)
    void Py_XDECREF(PyObject*)
