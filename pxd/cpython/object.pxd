# The declarations of Cython's own file that the package uses. Its file also reads two others.

cdef extern from "Python.h":
    ctypedef struct PyTypeObject

    ctypedef struct PyObject:
        Py_ssize_t ob_refcnt
        PyTypeObject* ob_type

    ctypedef void (*destructor)(PyObject*)

    ctypedef struct PyTypeObject:
        destructor tp_dealloc

    PyTypeObject* Py_TYPE(object)

    int Py_LT, Py_LE, Py_EQ, Py_NE, Py_GT, Py_GE

    bint PyObject_RichCompareBool(object, object, int) except -1
    object PyObject_Call(object, object, object)
