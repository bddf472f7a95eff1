# Executable: a subgraph that can run for any shapes of the fed values, with a cache of plans.

from .plan cimport Plan

cdef class Executable:
    cdef readonly object subgraph
    cdef Plan plan               # the only one, if the specs of all feeds are known
    cdef bint is_optimised
    cdef bint at_once            # optimise before the first run: it runs again, or ops wait
    cdef dict plans              # otherwise: by the specs of fed values
    cdef public object report    # called after a plan is made, or None
    cdef dict nested             # its codes as a part of other code, see graph/nested
    cdef dict inferred           # specs of results, by those of operands, see control/control_ops
    cdef Py_ssize_t size(self) except -1
    cpdef list run(self, values, trace=*)
    cdef Plan next_plan(self)
    cdef Plan plan_for(self, list values)
    cdef int make_room(self, Py_ssize_t nbytes) except -1
    cdef list run_values(self, list values)    # Values in, new Values out
