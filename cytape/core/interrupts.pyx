from cpython.exc cimport (
    PyErr_Clear, PyErr_Fetch, PyErr_NormalizeException, PyErr_Restore, PyErr_WriteUnraisable)
from cpython.ref cimport Py_XDECREF, PyObject

import os
import threading

cdef extern from "Python.h":
    PyObject* PyObject_CallOneArg(object callable, object argument) noexcept
    PyObject* PyObject_CallMethodOneArg(object x, object name, object argument) noexcept
    Py_ssize_t PyList_GET_SIZE(object list) noexcept
    int PyList_Append(object list, PyObject* item) noexcept
    int PyException_SetTraceback(PyObject* error, PyObject* traceback) noexcept
    int check_signals "PyErr_CheckSignals" () noexcept
    int PyErr_ExceptionMatches(object kind) noexcept
    unsigned long PyThread_get_thread_ident() noexcept
    int Py_MakePendingCalls() noexcept
    int Py_AddPendingCall(int (*function)(void*) except -1, void* argument) noexcept

cdef int64_t effort = 0
cdef unsigned long main_thread
cdef list put_off = []  # errors that the main thread raises at its next check


cdef object learn_main_thread():
    global main_thread
    main_thread = threading.main_thread().ident


learn_main_thread()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=lambda: learn_main_thread())


cdef int64_t* effort_so_far() noexcept:
    return &effort


cdef int raise_again(void* nothing) except -1:
    if not put_off:
        return 0
    first = put_off[0]
    put_off[:] = [error for error in put_off if type(error) is not type(first)]
    if put_off:
        Py_AddPendingCall(raise_again, NULL)
    raise first


cdef int look_without_gil() noexcept with gil:
    return INTERRUPTED if check_signals() < 0 else 0


cdef int raise_failure(int failed) except -1:
    if failed == INTERRUPTED:
        return -1
    raise MemoryError()


cdef void put_off_present_error() noexcept:
    cdef PyObject* kind
    cdef PyObject* error
    cdef PyObject* traceback
    PyErr_Fetch(&kind, &error, &traceback)
    PyErr_NormalizeException(&kind, &error, &traceback)
    if traceback != NULL:
        PyException_SetTraceback(error, traceback)
    if PyList_Append(put_off, error) < 0:
        PyErr_Clear()
    Py_XDECREF(kind)
    Py_XDECREF(error)
    Py_XDECREF(traceback)


cdef void tell(object listener, str method, object argument) noexcept:
    cdef PyObject* kind
    cdef PyObject* error
    cdef PyObject* traceback
    cdef PyObject* result
    cdef bint in_main_thread
    PyErr_Fetch(&kind, &error, &traceback)
    in_main_thread = PyThread_get_thread_ident() == main_thread
    # A pending signal would be raised inside the function, before its first effect.
    if in_main_thread and Py_MakePendingCalls() < 0:
        put_off_present_error()
    result = (PyObject_CallOneArg(listener, argument) if method is None else
              PyObject_CallMethodOneArg(listener, method, argument))
    if result == NULL:
        if in_main_thread and PyErr_ExceptionMatches(KeyboardInterrupt):
            put_off_present_error()
        else:
            PyErr_WriteUnraisable(listener)
    Py_XDECREF(result)
    if PyList_GET_SIZE(put_off):
        Py_AddPendingCall(raise_again, NULL)
    PyErr_Restore(kind, error, traceback)
