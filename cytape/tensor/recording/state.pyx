from cytape.core.accumulator cimport tangent_of
from cytape.core.op_store cimport is_known

from .leaked_tensors cimport SOURCES, origins
from .recorders cimport Reads

from cytape.errors import TapeStateError
import cytape.tensor.recording.entered_blocks as entered_blocks
import cytape.tensor.recording.recorders as recorders
import cytape.tensor.recording.thread_stack as thread_stack

# Names of other modules that are available here, too.
for module, names in (
        (entered_blocks, "building_into building_under departures push_forwardprop_state "
                         "stop_recording suspended unrecorded"),
        (recorders, "Origins Reads Recorder TangentRecorder"),
        (thread_stack, "current_graph")):
    globals().update({name: getattr(module, name) for name in names.split()})

NO_GRADIENTS, FIRST_ORDER, HIGHER_ORDER = range(3)
MOST_DETACHED = 16  # tensors that a recorder notes; they keep their traces alive


cpdef int possible_gradient_types(tensors) except -1:
    """Return the modes by which functions of some tensors may be differentiated.

    Parameters
    ----------
    tensors : sequence of Tensor or Variable

    Returns
    -------
    int
        `NO_GRADIENTS` (0) if no recorder of this thread follows any of them; `FIRST_ORDER` (1) if
        one does, which is not persistent if it is a tape; else `HIGHER_ORDER` (2).

    Examples
    --------
    >>> import cytape
    >>> x = cytape.constant(1.0)
    >>> with cytape.GradientTape() as tape:
    ...     tape.watch(x)
    ...     possible_gradient_types([x])
    1
    """
    cdef Recorder recorder
    cdef TangentRecorder accumulator
    cdef int order = 0
    for recorder in recording() or ():
        for tensor in tensors:
            if is_known(recorder, tensor.id) or (
                    recorder.watch_accessed_variables and getattr(tensor, "trainable", False)):
                order += 2 if recorder.persistent else 1
                break
    for accumulator in accumulating() or ():
        for tensor in tensors if accumulator.reads is None else ():
            if tangent_of(accumulator, tensor.id) != NULL:
                order += 1 if accumulator.rule is None else 2
                break
    return min(order, 2)


def possible_modes() -> tuple:
    """Return the modes by which this thread may differentiate the ops that it runs next.

    Returns
    -------
    (bool, bool)
        Whether gradients of it may be asked for, and whether tangents.

    Examples
    --------
    >>> import cytape
    >>> with cytape.GradientTape():
    ...     possible_modes()
    (True, False)
    """
    cdef TangentRecorder accumulator
    cdef Recorder tape
    cdef bint reverse = False, forward = False
    for tape in recording() or ():
        reverse |= not tape.follows_leaks_only
    for accumulator in accumulating() or ():
        forward = True
        reverse |= accumulator.by_transposition or accumulator.rule is not None
    return reverse, forward


def anybody_records() -> bool:
    """Return whether this thread has entered a recorder."""
    return recording() is not None or accumulating() is not None


def is_recorded(id_t id) -> bool:
    """Return whether a recorder of this thread tracks the tensor with this id."""
    return bool(followers_of(id, id, False))


def is_transposed(id_t id) -> bool:
    """Return whether a tensor depends on the gradient of a rule that forward mode transposes."""
    cdef Recorder recorder
    for recorder in recording() or ():
        if recorder.transposes and is_known(recorder, id):
            return True
    return False


cdef list followers_of(id_t id, id_t value, bint trainable_variable):
    return [recorder for recorder in (*(recording() or ()), *(accumulating() or ()))
            if follows(recorder, id, value, trainable_variable)]


cdef list followers_everywhere(id_t id, id_t value, bint trainable_variable):
    cdef list found = followers_of(id, value, trainable_variable)
    return found + [recorder for recorder in hidden_recorders()
                    if follows(recorder, id, value, trainable_variable)]


cdef bint follows(recorder, id_t id, id_t value, bint trainable_variable) except -1:
    cdef TangentRecorder accumulator
    if type(recorder) is not TangentRecorder:
        if (<Recorder>recorder).leaks is not None:
            return origins(recorder, [id, value]) & SOURCES
        return is_known(<Recorder>recorder, id) or is_known(<Recorder>recorder, value) or (
            trainable_variable and (<Recorder>recorder).watch_accessed_variables)
    accumulator = recorder
    if accumulator.reads is not None and accumulator.reads.silent:
        return False
    if trainable_variable and accumulator.reads is not None and accumulator.reads.watch_variables:
        return True
    return tangent_of(accumulator, id) != NULL or tangent_of(accumulator, value) != NULL


cdef list recorders_around(recorder):
    """Return the recorders outside of a checkpointed call, given the one that notes its reads."""
    cdef Reads reads = None
    if type(recorder) is TangentRecorder:
        reads = (<TangentRecorder>recorder).reads
    return [] if reads is None or reads.silent else reads.around


cdef list hidden_recorders():
    """List the recorders outside of the traces and checkpointed calls of this thread.

    They do not see the ops inside, but they track the captured tensors.
    """
    cdef ThreadState thread = this_thread()
    cdef Entry entry, other
    cdef list found = []
    for recorder in [*(accumulating() or ())]:
        found += recorders_around(recorder)
    for recorder in found:  # grows, by recorders outside of outer calls
        found += recorders_around(recorder)
    entry = None if thread.graph is None else innermost_entry()
    while entry is not None:
        if entry.thread is thread and not entry.left:
            if entry.kind == SCOPE and not entry.what.contexts[entry.number].recorded:
                break  # of stop_recording
            if entry.kind == CUT:
                found += [other.what for other in entry.before if not other.left
                          and other.suspensions[0] == 0 and other not in thread.suspended]
        entry = entry.outer
    return found


cdef int note_detachment(
    tensor, id_t id, id_t value, bint trainable_variable, str how
) except -1:
    cdef dict noted
    for recorder in followers_everywhere(id, value, trainable_variable):
        if type(recorder) is TangentRecorder:
            (<TangentRecorder>recorder).detached = how
        else:
            noted = (<Recorder>recorder).detached
            if noted is not None and len(noted) < MOST_DETACHED:
                noted[id] = tensor, how
    return 0


def how_left(dict detached not None) -> str:
    """Return how values left their tensors, as noted by a tape."""
    return " or ".join(dict.fromkeys([how for _, how in detached.values()]))


cdef int require_in_sight(recorder, graph) except -1:
    cdef Entry entry = entry_of(recorder)
    cdef ThreadState thread = this_thread()
    if entry is None or entry.thread is not thread or thread.graph is not graph or (
            entry in thread.recorders):
        return 0
    what = "an accumulator" if type(recorder) is TangentRecorder else "a tape"
    raise TapeStateError(
        f"{what} that was entered outside of the function, branch or loop body that is being "
        "traced cannot track tensors inside of it: enter it inside, or return the tensor and "
        "differentiate it outside")
