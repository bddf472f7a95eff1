# Context managers other than recorders: graphs, scopes of graphs, suspensions of recorders.
# `thread_stack.pxd` explains entries.

from libc.stdint cimport int32_t

from cytape.tensor.values.released_ids cimport Counts, counts

from .recorders cimport entry_of, suspend
from .thread_stack cimport (
    CUT, GRAPH, SCOPE, SUSPENSION, Entry, ThreadState, innermost_entry, leave_entry, new_entry,
    put_back, this_thread)

cdef class Block:
    cdef list entries            # of those ``with`` statements that have not been left
    cdef object value            # the object that `as` binds
    cdef Entry enter(self, ThreadState thread)
    cdef int leave(self, Entry entry) except -1

cdef class building_into(Block):
    pass

cdef class building_under(Block):
    cdef object graph
    cdef int32_t number

cdef class unrecorded(Block):
    pass

cdef class push_forwardprop_state(Block):
    pass

cdef class departures:
    cdef readonly bint any
    cdef set ignored             # ids
    cdef object at_first         # called before the first value is taken; or None
    cdef object covers           # returns whether the block covers a tensor that is taken; or None
    cdef bint told               # whether at_first has been called
    cdef bint note(self, tensor, str how) except -1
    cdef object around           # the block around this one, or None

cdef class suspended(Block):
    cdef tuple recorders         # None: all that are entered

cdef class between:
    cdef tuple begin, end        # functions
