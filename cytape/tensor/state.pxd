# Who is recording: one stack of recorders per thread, tapes and accumulators in the order of
# entering; and the registries of all that may hold traces or tangents, so that the death of a
# tensor reaches each of them.
#
# A recorder that computes (an accumulator a tangent) is not disturbed by what it computes, nor are
# those entered after it: meanwhile they are off the stack.

from cpython.ref cimport PyObject
from cytape.core.accumulator cimport ForwardAccumulator
from cytape.core.tape cimport Tape
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

cdef class Recorder(Tape):
    cdef readonly bint watch_accessed_variables
    cdef ThreadState thread      # whose stack this recorder is on, or None
    cdef dict watched            # variables by id, in order of first watch
    cdef int suspensions
    cdef bint registered
    cdef readonly bint detached  # a value that it follows left by numpy(), item() or tolist()
    cdef int watch_variable_of(self, object variable, id_t id) except -1

cdef class TangentRecorder(ForwardAccumulator):
    cdef ThreadState thread
    cdef int suspensions
    cdef bint registered
    cdef bint outermost          # on its stack: nobody records what it computes
    cdef readonly bint detached  # as of a Recorder
    cdef readonly bint by_transposition
    cdef readonly object rule

cdef class ThreadState:
    cdef list recorders          # the entered ones, innermost last
    cdef list active             # the tapes that are not suspended; None if there are none
    cdef list accumulating       # the accumulators that are not suspended; None if there are none
    cdef object graph            # what ops are added to, also those of tensors with values; or None
    cdef int update(self) except -1

cdef Counts* counts() noexcept
cdef ThreadState this_thread()
cdef list recording()     # the tapes of this thread that record now, innermost last; or None
cdef list accumulating()  # its accumulators that follow ops now, innermost last; or None
cdef object building()    # the graph that this thread builds, or None
cdef bint observed()      # whether any of these sees what ops do: a value alone is not enough
# Which of them follow a tensor by its id or its value's, or will as soon as an op reads it.
cdef list followers_of(id_t id, id_t value, bint trainable_variable)
cdef int note_detachment(id_t id, id_t value, bint trainable_variable) except -1
# Leave only those recorders on this thread's stack that were entered before one; put back a stack.
cdef int begin_computing(TangentRecorder recorder) except -1
cdef int end_computing(list recorders) except -1
cdef void handle_died(id_t id) noexcept
cdef void handle_revived(id_t id) noexcept
cdef void value_died(id_t id) noexcept
