# Hooks around the calls of ops and of their backward functions, while a thread is profiled.

from cpython.ref cimport PyObject
from cytape.core.vspace cimport BackwardCall, VSpace
from cytape.tensor.operators cimport Operator

ctypedef object (*call_t)(object op, object args, PyObject* arguments)
ctypedef object (*call1_t)(Operator op, object x)
ctypedef object (*call2_t)(Operator op, object x, object y)
ctypedef int (*assign_t)(Operator op, object x, object index, object value) except -1
ctypedef int (*backward_t)(VSpace space, BackwardCall* call) except -1

cdef class Originals:  # of a class of ops
    cdef call_t call          # NULL: by vectorcall
    cdef call1_t call1
    cdef call2_t call2
    cdef assign_t assign

cdef class Log:
    cdef readonly list events     # of `Event`s, in the order in which they ended
    cdef readonly list memory     # (seconds, bytes taken or freed)
    cdef dict event_of            # id of a result -> the place of its call among the events
    cdef dict held                # id of an owner of memory -> [number of values in it, bytes]
    cdef int n_profiles           # that are running
    cdef dict alive               # id of a reference to a value -> it, and the id of the owner
    cdef int note_forward(self, Operator op, result, double start) except -1
    cdef int note_memory(self, value, double when) except -1
