# Who is recording, and which graph is built. Each thread has a stack of what it entered: tapes and
# accumulators (recorders) in the order of entering, graphs, and scopes of graphs.
#
# a. What is entered is an Entry, in front of the one entered before it. The innermost is the value
#    of a context variable, so every asyncio task has a stack of its own, which begins as that of
#    the task that started it, and generators share their caller's.
# b. Entries are never taken off, but marked as left: in any order, by any task, in any thread. One
#    that was left is passed by in every stack that it is on.
# c. What follows from the stack is kept in the thread's state, for ops to look at: the tapes that
#    record now, and so on. It is worked out anew when CPython's version of the thread's context
#    says that the context is another one. Entries of other threads count for nothing: a context
#    may be copied to another thread.
# d. A recorder that computes (an accumulator a tangent) is not disturbed by what it computes, nor
#    are those entered after it: meanwhile they are off the stack, and contexts are not looked at.

from cpython.ref cimport PyObject
from libc.stdint cimport int32_t, uint64_t

from .deaths cimport Counts, counts

cdef extern from "Python.h":
    ctypedef struct PyThreadState:
        uint64_t context_ver
    PyThreadState* PyThreadState_Get() noexcept

cdef enum:
    NO_VERSION = 0  # of a context

cdef enum:  # kinds of entries, and what `what` is
    RECORDER    # a tape or accumulator
    GRAPH       # a graph to build, or None: to compute
    CUT         # nothing: recorders entered before are off the stack
    SUSPENSION  # the entries of recorders that do not record
    SCOPE       # a graph that is built under the context of a number

cdef class Entry:
    cdef ThreadState thread
    cdef Entry outer        # what was entered before it
    cdef int kind
    cdef int32_t number, number_before  # of a scope, and of what is to be put back
    cdef object what
    cdef Entry beneath      # for graphs and scopes: which it replaced
    cdef object before      # what is to be put back, if all is left in order
    cdef bint left
    # Fields of a recorder, which lives as long as this has not been left.
    cdef int* suspensions   # how often it was suspended by threads that have not entered it
    cdef bint* outermost    # of an accumulator: nobody records what it computes; NULL: a tape

cdef class ThreadState:
    cdef list recorders          # the entries of those entered, innermost last
    cdef list suspended          # those of them that do not record
    cdef list active             # the tapes that record; None if there are none
    cdef list accumulating       # the accumulators that follow; None if there are none
    cdef Entry building          # the innermost of graphs
    cdef object graph            # what ops are added to, also those of tensors with values; or None
    cdef dict scopes             # graph -> the innermost of its scopes
    cdef PyThreadState* own
    cdef uint64_t version        # of the context that all this is about
    cdef int held                # how many reasons there are not to look at contexts now
    cdef bint disturbed          # something was entered or left meanwhile
    cdef object departures       # who is told of values that become plain arrays; or None
    cdef int update(self) except -1
    cdef int follow_context(self) except -1
    cdef int follow_recorders(self) except -1
    cdef int release_hold(self) except -1

cdef class Keeper:
    cdef ThreadState state

cdef ThreadState this_thread()
cdef list recording()     # the tapes of this thread that record now, innermost last; or None
cdef list accumulating()  # its accumulators that follow ops now, innermost last; or None
cdef object building()    # the graph that this thread builds, or None
cdef bint observed()      # whether any of these sees what ops do: a value alone is not enough

cdef Entry innermost_entry()
cdef int enter_entry(Entry entry) except -1  # as the innermost
cdef Entry new_entry(ThreadState thread, int kind, what)  # which is entered
cdef int leave_entry(Entry entry) except -1
cdef list still_entered(list entries)
cdef int put_back(ThreadState thread, list recorders) except -1
