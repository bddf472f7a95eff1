# Queries about recorders: which tensors are tracked, and by which derivatives.
#
# This file gives `ops` access to the stacks of threads (`threads.pxd`), the recorders on them
# (`recorders.pxd`), and the counters that ops read first (`deaths.pxd`).

from cytape.core.typedefs cimport id_t

from cytape.tensor.values.released_ids cimport Counts, counts

from .recorders cimport (
    Recorder, TangentRecorder, begin_computing, begin_recording_alone, end_computing, entry_of,
    mark)
from .thread_stack cimport (
    CUT, SCOPE, Entry, ThreadState, accumulating, building, innermost_entry, observed, recording,
    this_thread)

cpdef int possible_gradient_types(tensors) except -1
# Which recorders of this thread follow a tensor by its id or its value's, or will as soon as an op
# reads it.
cdef list followers_of(id_t id, id_t value, bint trainable_variable)
# The same with the recorders outside of the traces and checkpointed calls that it is in.
cdef list followers_everywhere(id_t id, id_t value, bint trainable_variable)
# Raise for a tensor of a graph that is built out of the sight of a recorder that goes on outside.
cdef int require_in_sight(recorder, graph) except -1
# Tell recorders that follow a tensor that its value left it, and how.
cdef int note_detachment(
    tensor, id_t id, id_t value, bint trainable_variable, str how) except -1
