# Queries about recorders: which tensors are tracked, and by which modes of differentiation.
#
# Ops cimport this file for the stacks of threads (`thread_stack.pxd`), the recorders on them
# (`recorders.pxd`), and the counters that ops read first (`released_ids.pxd`).

from cytape.core.typedefs cimport id_t

from cytape.tensor.values.released_ids cimport Counts, counts

from .recorders cimport (
    Recorder, TangentRecorder, begin_computing, begin_recording_alone, end_computing, entry_of,
    mark)
from .thread_stack cimport (
    CUT, SCOPE, Entry, ThreadState, accumulating, building, innermost_entry, observed, recording,
    this_thread)

cpdef int possible_gradient_types(tensors) except -1
# The recorders of this thread that track a tensor by its id or its value's id, or will when an op
# reads it.
cdef list followers_of(id_t id, id_t value, bint trainable_variable)
# The same with the recorders outside of the traces and checkpointed calls that it is in.
cdef list followers_everywhere(id_t id, id_t value, bint trainable_variable)
# Raise for a tensor of a graph whose ops an outer, active recorder does not record.
cdef int require_in_sight(recorder, graph) except -1
# Notify recorders that track a tensor that its value was taken, and how.
cdef int note_detachment(
    tensor, id_t id, id_t value, bint trainable_variable, str how) except -1
