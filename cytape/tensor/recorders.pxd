# Recorders: the tapes and the accumulators that can stand on a thread's stack (`threads.pxd`). What
# they do there alike is written once, as functions that are methods of both classes.

from cpython.ref cimport PyObject
from cytape.core.accumulator cimport ForwardAccumulator
from cytape.core.tape cimport Tape
from cytape.core.typedefs cimport id_t

from .deaths cimport Counts, counts, register, unregister
from .threads cimport (
    RECORDER, Entry, ThreadState, enter_entry, leave_entry, still_entered, this_thread)

cdef class Recorder(Tape):
    cdef readonly bint watch_accessed_variables
    cdef Entry entry             # where this recorder stands on a stack, or None
    cdef dict watched            # variables by id, in order of first watch; None for none
    cdef int suspensions         # by threads that have not entered it
    cdef bint registered
    # Tensors that it follows whose values left by numpy(), item() or tolist(), by id: the first
    # MOST_DETACHED of them. None: nobody wants to know.
    cdef public dict detached
    cdef set watched_results     # ids of what ops on it made, and it was told to watch, or None
    # Ids of what watched tensors name since they were changed in place, unseen; None for none.
    cdef set changed
    cdef int hear_of_deaths(self) except -1
    cdef int watch_tensor(self, id_t id) except -1
    cdef int watch_variable_of(self, object variable, id_t id) except -1

cdef class TangentRecorder(ForwardAccumulator):
    cdef Entry entry
    cdef int suspensions
    cdef bint registered
    cdef bint outermost          # on its stack: nobody records what it computes
    cdef readonly bint detached  # a value that it follows left by numpy(), item() or tolist()
    cdef readonly bint by_transposition
    cdef readonly object rule
    cdef readonly Reads reads    # what it notes in the place of tangents, if that is what it is for

# What a program reads of that which recorders follow who do not see the program themselves.
cdef class Reads:
    cdef list around             # these recorders
    cdef dict tensors            # that they follow, by id
    cdef dict variables          # read or assigned to, by id, each with the value that was found
    cdef bint follow(self, id_t id) noexcept

cdef Recorder new_recorder(bint persistent, bint watch_accessed_variables)
cdef Entry entry_of(recorder)  # where it stands on a stack, or None
cdef int enter(recorder) except -1  # this thread's stack
cdef int leave(recorder) except -1  # the stack that it is on
cdef int suspend(recorder, int change) except -1
# Leave only those recorders on this thread's stack that were entered before one, or one that was
# not entered; put back a stack.
cdef int begin_computing(TangentRecorder recorder) except -1
cdef int begin_recording_alone(Recorder recorder) except -1
cdef int end_computing(list recorders) except -1
