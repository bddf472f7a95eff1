# Who is recording: one stack of recorders per thread, in the order of entering; and the registry of
# all recorders that may hold traces, so that the death of a tensor reaches each of them.

from cpython.ref cimport PyObject
from cytape.core.tape cimport Tape
from cytape.core.typedefs cimport id_t

cdef struct Counts:
    int entered   # recorders entered, in all threads: 0 is the fast way out of recording
    int holding   # recorders registered below

cdef class Recorder(Tape):
    cdef readonly bint watch_accessed_variables
    cdef ThreadState thread      # whose stack this recorder is on, or None
    cdef dict watched            # variables by id, in order of first watch
    cdef int suspensions
    cdef bint registered
    cdef int watch_variable_of(self, object variable, id_t id) except -1

cdef class ThreadState:
    cdef list recorders          # the entered ones, innermost last
    cdef list active             # those of them that are not suspended; None if there are none
    cdef int update(self) except -1

cdef Counts* counts() noexcept
cdef ThreadState this_thread()
cdef list recording()  # the recorders of this thread that record now, innermost last; or None
cdef void handle_died(id_t id) noexcept
cdef void handle_revived(id_t id) noexcept
