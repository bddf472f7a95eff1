# Recorders: tapes and accumulators on a thread's stack (`threads.pxd`). Their common part is
# written once, as functions that are methods of both classes.

from cpython.ref cimport PyObject
from cytape.core.accumulator cimport ForwardAccumulator
from cytape.core.idtable cimport IdTable
from cytape.core.tape cimport Tape
from cytape.core.typedefs cimport id_t, index_t

from cytape.tensor.values.released_ids cimport Counts, counts, register, unregister
from cytape.tensor.values.value cimport Value

from .thread_stack cimport (
    RECORDER, Entry, ThreadState, enter_entry, leave_entry, still_entered, this_thread)

cdef class Recorder(Tape):
    cdef readonly bint watch_accessed_variables
    cdef Entry entry             # where this recorder stands on a stack, or None
    cdef dict watched            # variables by id, in order of first watch; None for none
    cdef int suspensions         # by threads that have not entered it
    cdef bint registered
    # Tracked tensors whose values left on purpose, by id, with the way of leaving: the first
    # MOST_DETACHED. None if this is not noted.
    cdef public dict detached
    cdef set watched_results     # ids of results of its ops that were watched later, or None
    # Ids of the values that watched tensors got by writes in place, not yet processed; None for
    # none.
    cdef set changed
    cdef int hear_of_deaths(self) except -1
    cdef int watch_tensor(self, id_t id) except -1
    cdef int watch_variable_of(self, object variable, id_t id) except -1

cdef class TangentRecorder(ForwardAccumulator):
    cdef Entry entry
    cdef int suspensions
    cdef bint registered
    cdef bint outermost          # outermost on its stack: its ops are not recorded
    cdef readonly str detached   # how a value that it follows left on purpose; None: none did
    cdef readonly bint by_transposition
    cdef readonly object rule
    cdef readonly Reads reads    # notes reads instead of tangents, if not None

# Reads: inputs of a program that outer recorders track. These do not see the program itself.
cdef class Reads:
    cdef list around             # the outer recorders
    cdef dict tensors            # tensors that they follow, by id
    cdef dict variables          # read or assigned to, by id, each with the value that was found
    cdef bint watch_variables    # one of them watches trainable variables that are read
    cdef bint silent             # it does not ask for errors where values leave their tensors
    cdef bint follow(self, id_t id) noexcept
    # Events: the program reads a variable, calls an op, or gives a tensor a second id.
    cdef int found_variable(self, bint trainable, Value value) except -1
    cdef int called(self, list inputs, list outputs) except -1
    cdef int renamed(self, id_t id, id_t other) except -1

# Origins: tensors that results of a program depend on. Detachments do not count it as a recorder
# that loses a derivative.
cdef class Origins(Reads):
    cdef id_t first              # ids from this one on are of tensors that the program made
    cdef bint any                # tensors that no recorder follows count, too: a graph is built
    # id -> place in `sets`, which has the ids of the tensors that a result depends on. In the first
    # place are none: that of arguments, and of values of variables.
    cdef IdTable places
    cdef list sets
    cdef int put(self, id_t id, index_t place) except -1

cdef Recorder new_recorder(bint persistent, bint watch_accessed_variables)
cdef Entry entry_of(recorder)  # where it stands on a stack, or None
cdef int enter(recorder) except -1  # this thread's stack
cdef int leave(recorder) except -1  # the stack that it is on
# Mark a tensor that follows from tensors that others follow, in an accumulator with `reads`.
cdef int mark(TangentRecorder accumulator, id_t id) except -1
cdef int suspend(recorder, int change) except -1
# Leave only those recorders on this thread's stack that were entered before one, or one that was
# not entered; put back a stack.
cdef int begin_computing(TangentRecorder recorder) except -1
cdef int begin_recording_alone(Recorder recorder) except -1
cdef int end_computing(list recorders) except -1
