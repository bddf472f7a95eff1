# Warnings of random draws by Python during tracing.

from cytape.ops.python.reachable cimport Reachable

cpdef call_traced(graph, f, args=*, kwargs=*)

cdef class Draws(Reachable):
    cdef int warn(self, graph, list moved, list being_traced, bint seeded) except -1
