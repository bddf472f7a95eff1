# Observers of the death of tensors: registries of all tapes that may hold traces, and of all
# accumulators that may hold tangents. The counters that every op reads first stand beside them.

from cpython.ref cimport PyObject
from cytape.core.typedefs cimport id_t

cdef struct Registry:
    PyObject** members   # borrowed: each leaves when it dies
    int count
    int capacity
    int registrations    # of members that came or went

cdef struct Counts:
    int entered          # recorders entered, in all threads: 0 is the fast way out of recording
    int symbolic         # symbolic values alive, and threads that build: 0 is the way past graphs
    Registry tapes
    Registry accumulators

cdef Counts* counts() noexcept
cdef int register(Registry* registry, PyObject* member) except -1
cdef void unregister(Registry* registry, PyObject* member) noexcept
cdef void handle_died(id_t id) noexcept
cdef void handle_revived(id_t id) noexcept
cdef void value_died(id_t id) noexcept
