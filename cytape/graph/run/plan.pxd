# Plan: a subgraph compiled for given shapes, ready to run.

from .executor cimport Frame
from .plan_code cimport Code

# The trace of runs whose caller gives none; None: they are not traced.
cdef object tracer

cdef class Plan:
    cdef readonly Code code
    cdef Frame idle              # None while it is in use
    cdef long long last_use      # set by owners of several plans
    cdef Py_ssize_t size(self) except -1
    cdef list run_values(self, list values)   # Values in, new Values out
    cdef list run_traced(self, list values, trace)
