# Observers of released tensors: registries of all tapes, which may hold traces, and of all
# accumulators, which may hold tangents; and the counters that every op reads first.

from cpython.ref cimport PyObject
from cytape.core.typedefs cimport id_t

cdef struct Registry:
    PyObject** members   # borrowed: each is removed by its __dealloc__
    int count
    int capacity
    int registrations    # of members that came or went

cdef struct Counts:
    int entered          # recorders entered, in all threads: if 0, ops do not record
    int symbolic         # symbolic values alive, and threads that build graphs: if 0, ops are eager
    Registry tapes
    Registry accumulators

cdef Counts* counts() noexcept
cdef int register(Registry* registry, PyObject* member) except -1
cdef void unregister(Registry* registry, PyObject* member) noexcept
cdef void handle_died(id_t id) noexcept
cdef void handle_revived(id_t id) noexcept
cdef void value_died(id_t id) noexcept
