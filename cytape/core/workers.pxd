# Worker threads for backward passes: each runs one op's backward function while the thread that
# differentiates does the bookkeeping, and others.

from .vspace cimport BackwardCall, VSpace

cdef class Task:
    cdef VSpace vspace
    cdef BackwardCall* call  # NULL: cancelled
    cdef bint started
    cdef int hand          # where in the sweep the call belongs
    cdef object done       # the queue that tells that it was run
    cdef object error

cdef int num_threads() noexcept
# False: there is no worker to be had.
cdef bint start(VSpace vspace, BackwardCall* call, int hand, done) except -1
