# Recorders: tapes and accumulators on a thread's stack (`thread_stack.pxd`). Their common methods
# are functions that are attributes of both classes.

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
    cdef Entry entry             # of this recorder on a stack, or None
    cdef dict watched            # variables by id, in order of first watch; None for none
    cdef int suspensions         # by threads that have not entered it
    cdef bint registered
    # Tracked tensors whose values were taken explicitly, by id, with the way: the first
    # MOST_DETACHED. None if this is not noted.
    cdef public dict detached
    # Of `leaked_tensors.pxd`: the newest id when the recorded call began, 0 to ignore leaks; and
    # leaks that are watched, by id, with the line of the user's program, None for none.
    cdef id_t began
    cdef readonly dict leaks
    cdef bint follows_leaks_only  # no gradient is asked of it
    cdef bint transposes         # records a rule of reverse mode, for forward mode
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
    cdef readonly str detached   # how a tracked value was taken explicitly; None: none was
    cdef readonly bint by_transposition
    cdef readonly object rule
    cdef readonly Reads reads    # notes reads instead of tangents, if not None

# Reads: inputs of a program that outer recorders track; these do not record the program itself.
cdef class Reads:
    cdef list around             # the outer recorders
    cdef dict tensors            # tensors that they track, by id
    cdef dict variables          # read or assigned to, by id, each with its value before
    cdef bint watch_variables    # one of them watches trainable variables that are read
    cdef bint silent             # no errors if values are taken from tensors
    cdef bint follow(self, id_t id) noexcept
    # Events: the program reads a variable, calls an op, or gives a tensor a second id.
    cdef int found_variable(self, bint trainable, Value value) except -1
    cdef int called(self, list inputs, list outputs) except -1
    cdef int renamed(self, id_t id, id_t other) except -1

# Origins: tensors that results of a program depend on. It is not a recorder that loses derivatives
# by detached values.
cdef class Origins(Reads):
    cdef id_t first              # ids from this one on are of tensors created by the program
    cdef bint any                # untracked tensors count, too: a graph is being built
    # id -> position in `sets`, of the set of ids that a result depends on. The first set is empty,
    # for arguments and values of variables.
    cdef IdTable places
    cdef list sets
    cdef int put(self, id_t id, index_t place) except -1

cdef Recorder new_recorder(bint persistent, bint watch_accessed_variables)
cdef Entry entry_of(recorder)  # its entry on a stack, or None
cdef int enter(recorder) except -1  # this thread's stack
cdef int leave(recorder) except -1  # the stack that it is on
# Mark a tensor that depends on tracked tensors, in an accumulator with `reads`.
cdef int mark(TangentRecorder accumulator, id_t id) except -1
cdef int suspend(recorder, int change) except -1
# Leave only recorders on this thread's stack that were entered before a given one, itself perhaps
# not entered; restore the stack.
cdef int begin_computing(TangentRecorder recorder) except -1
cdef int begin_recording_alone(Recorder recorder) except -1
cdef int end_computing(list recorders) except -1
