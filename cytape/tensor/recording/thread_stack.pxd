# Stacks of entered recorders (tapes and accumulators), graphs and scopes of graphs, one per thread
# or asyncio task.
#
# a. Each `with` pushes an Entry that refers to the one before it. The innermost entry is the value
#    of a context variable, so every asyncio task has its own stack, initially that of the task that
#    started it, and generators share their caller's.
# b. Entries are never popped, but marked as left: in any order, by any task, in any thread. An
#    entry marked as left is skipped in every stack that contains it.
# c. State derived from the stack (the recording tapes and so on) is kept in the thread's state, for
#    ops to read. It is recomputed when CPython's version of the thread's context shows another
#    context. Entries of other threads are ignored: a context may be copied to another thread.
# d. The ops that a recorder computes itself (an accumulator's tangents) are not recorded by it, nor
# by
#    recorders entered after it: they are off the stack meanwhile, and contexts are not checked.

from cpython.ref cimport PyObject
from libc.stdint cimport int32_t, uint64_t

from cytape.tensor.values.released_ids cimport Counts, counts

cdef extern from "Python.h":
    ctypedef struct PyThreadState:
        uint64_t context_ver
    PyThreadState* PyThreadState_Get() noexcept

cdef enum:
    NO_VERSION = 0  # of a context

cdef enum:  # kinds of entries, and the type of `what`
    RECORDER    # a tape or accumulator
    GRAPH       # a graph to build, or None: to compute
    CUT         # recorders entered before are off the stack
    SUSPENSION  # the entries of recorders that do not record
    SCOPE       # a graph that is built under the context of a number

cdef class Entry:
    cdef ThreadState thread
    cdef Entry outer        # the entry before it
    cdef int kind
    cdef int32_t number, number_before  # of a scope, and of the one to restore
    cdef object what
    cdef Entry beneath      # for graphs and scopes: the one it replaced
    cdef object before      # the object to restore, if all entries are left in order
    cdef bint left
    # Fields of a recorder, which lives as long as this has not been left.
    cdef int* suspensions   # number of suspensions by threads that have not entered it
    cdef bint* outermost    # of an accumulator: whether its ops go unrecorded; NULL: a tape

cdef class ThreadState:
    cdef list recorders          # the entries of those entered, innermost last
    cdef list suspended          # the entered ones that do not record
    cdef list active             # the tapes that record; None if there are none
    cdef list accumulating       # the active accumulators; None if there are none
    cdef Entry building          # the innermost of graphs
    cdef object graph            # ops are added to it, also with eager operands; or None
    cdef dict scopes             # graph -> the innermost of its scopes
    cdef PyThreadState* own
    cdef uint64_t version        # of the context that this state was derived from
    cdef int held                # number of reasons not to check contexts now
    cdef bint disturbed          # entries were added or left in the meantime
    cdef object departures       # notified of values that become plain arrays; or None
    cdef int update(self) except -1
    cdef int follow_context(self) except -1
    cdef int follow_recorders(self) except -1
    cdef int release_hold(self) except -1

cdef class Keeper:
    cdef ThreadState state

cdef ThreadState this_thread()
cdef list recording()     # the active tapes of this thread, innermost last; or None
cdef list accumulating()  # its active accumulators, innermost last; or None
cdef object building()    # the graph that this thread builds, or None
cdef bint observed()      # whether ops of this thread are recorded or added to a graph

cdef Entry innermost_entry()
cdef int enter_entry(Entry entry) except -1  # as the innermost
cdef Entry new_entry(ThreadState thread, int kind, what)  # which becomes the innermost
cdef int leave_entry(Entry entry) except -1
cdef list still_entered(list entries)
cdef int put_back(ThreadState thread, list recorders) except -1
