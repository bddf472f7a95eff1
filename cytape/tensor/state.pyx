cimport cython
from cpython.exc cimport PyErr_Fetch, PyErr_Occurred, PyErr_Restore
from cpython.ref cimport Py_DECREF
from cytape.core.accumulator cimport tangent_of
from cytape.core.trace cimport Trace, drop_handle, trace_knows
from libc.stdlib cimport realloc
from libc.string cimport memmove, memset

import threading
from contextlib import contextmanager

cdef extern from *:
    """
    #if defined(_MSC_VER)
    static __declspec(thread) PyObject *cytape_thread_state = NULL;
    #else
    static __thread PyObject *cytape_thread_state = NULL;
    #endif
    """
    PyObject* cytape_thread_state

NO_GRADIENTS, FIRST_ORDER, HIGHER_ORDER = range(3)

cdef Counts the_counts
cdef object owner = threading.local()  # keeps each thread's state alive as long as the thread

memset(&the_counts, 0, sizeof(Counts))


cdef Counts* counts() noexcept:
    return &the_counts


cdef class ThreadState:
    def __cinit__(self):
        self.recorders = []

    def __dealloc__(self):
        global cytape_thread_state
        # The thread ends, but its finalizers may still record.
        if cytape_thread_state == <PyObject*>self:
            cytape_thread_state = NULL

    cdef int update(self) except -1:
        # New lists each time: whoever iterates over the old ones is not disturbed.
        cdef TangentRecorder accumulator
        cdef list active = [], accumulating = []
        for recorder in self.recorders:
            if type(recorder) is TangentRecorder:
                accumulator = recorder
                if accumulator.suspensions == 0:
                    accumulator.outermost = not active and not accumulating
                    accumulating.append(accumulator)
            elif (<Recorder>recorder).suspensions == 0:
                active.append(recorder)
        self.active = active if active else None
        self.accumulating = accumulating if accumulating else None
        return 0


cdef ThreadState this_thread():
    global cytape_thread_state
    if cytape_thread_state == NULL:
        owner.state = ThreadState()
        cytape_thread_state = <PyObject*>owner.state
    return <ThreadState>cytape_thread_state


cdef list recording():
    if the_counts.entered == 0 or cytape_thread_state == NULL:
        return None
    return (<ThreadState>cytape_thread_state).active


cdef list accumulating():
    if the_counts.entered == 0 or cytape_thread_state == NULL:
        return None
    return (<ThreadState>cytape_thread_state).accumulating


cdef object building():
    if the_counts.symbolic == 0 or cytape_thread_state == NULL:
        return None
    return (<ThreadState>cytape_thread_state).graph


cdef bint observed():
    return building() is not None or recording() is not None or accumulating() is not None


def current_graph():
    """Return the graph that this thread builds, None if it computes."""
    return building()


@contextmanager
def building_into(graph):
    """Add the ops of this thread to a graph (None: compute them) for the length of a block."""
    cdef ThreadState thread = this_thread()
    before = thread.graph
    the_counts.symbolic += 1
    thread.graph = graph
    try:
        yield graph
    finally:
        thread.graph = before
        the_counts.symbolic -= 1


@contextmanager
def unrecorded():
    """Take the recorders that this thread has entered off its stack for the length of a block."""
    cdef ThreadState thread = this_thread()
    recorders = thread.recorders
    thread.recorders = []
    thread.update()
    try:
        yield
    finally:
        end_computing(recorders)


cdef int begin_computing(TangentRecorder recorder) except -1:
    cdef ThreadState thread = this_thread()
    thread.recorders = thread.recorders[:thread.recorders.index(recorder)]
    return thread.update()


cdef int end_computing(list recorders) except -1:
    cdef ThreadState thread = this_thread()
    for recorder in recorders:
        if not is_entered(recorder):  # it left while it was off the stack
            recorders = [other for other in recorders if is_entered(other)]
            break
    thread.recorders = recorders
    return thread.update()


cdef bint is_entered(recorder):
    if type(recorder) is TangentRecorder:
        return (<TangentRecorder>recorder).thread is not None
    return (<Recorder>recorder).thread is not None


cdef class Recorder(Tape):
    """A tape that can stand on a thread's stack of recorders.

    Parameters
    ----------
    persistent : bool, optional
        Whether more than one gradient can be computed.
    watch_accessed_variables : bool, optional
        Whether trainable variables are watched when an op reads them.

    Examples
    --------
    >>> import cytape
    >>> v = cytape.Variable(2.0)
    >>> recorder = Recorder()
    >>> recorder.push()
    >>> y = v * v
    >>> recorder.pop()
    >>> recorder.variables
    [Variable(2.)]
    >>> recorder.is_known(y.id)
    True
    """

    def __init__(self, bint persistent=False, bint watch_accessed_variables=True):
        Tape.__init__(self, persistent)
        self.watch_accessed_variables = watch_accessed_variables
        self.watched = {}

    def __dealloc__(self):
        if self.registered:
            unregister(&the_counts.tapes, <PyObject*>self)

    @property
    def active(self) -> bool:
        """Whether this recorder is on a thread's stack."""
        return self.thread is not None

    @property
    def variables(self) -> list:
        """The variables watched so far, in order of first watch."""
        return list(self.watched.values())

    def push(self):
        """Enter this thread's stack of recorders.

        Raises
        ------
        ValueError
            If it is on a stack already.
        """
        if self.thread is not None:
            raise ValueError("this tape is recording already")
        if not self.registered:
            register(&the_counts.tapes, <PyObject*>self)
            self.registered = True
        self.thread = enter(self)

    def pop(self):
        """Leave the stack.

        Raises
        ------
        ValueError
            If it is on none.
        """
        if self.thread is None:
            raise ValueError("this tape is not recording")
        leave(self, self.thread)
        self.thread = None

    def watch_variable(self, variable):
        """Watch a variable, trainable or not.

        Parameters
        ----------
        variable : Variable
        """
        self.watch_variable_of(variable, variable.id)

    cdef int watch_variable_of(self, object variable, id_t id) except -1:
        if id not in self.watched:
            self.watch_id(id)
            self.watched[id] = variable
        return 0


@cython.final
cdef class TangentRecorder(ForwardAccumulator):
    """An accumulator that can stand on a thread's stack of recorders.

    Parameters
    ----------
    vspace : VSpace
    use_batch : bool, optional
        Whether tangents have a leading axis of directions.
    by_transposition : bool, optional
        Whether to derive the tangents of every op from its backward function, also if it has a
        forward rule of its own.
    rule : callable, optional
        What to compute for each op instead of tangents. Called with the op, its inputs and outputs
        (tensors), what is stored for each input (None: nothing) and the attributes; returns what to
        store for each output.

    Examples
    --------
    >>> import cytape
    >>> from cytape.ops.forward import fetch
    >>> from cytape.ops.gradients import tensor_vspace
    >>> x = cytape.constant(3.0)
    >>> recorder = TangentRecorder(tensor_vspace)
    >>> recorder.watch(x.id, cytape.constant(10.0))
    >>> recorder.push()
    >>> y = x * x
    >>> recorder.pop()
    >>> fetch(recorder, y.id)
    Tensor(60.)
    """

    def __init__(self, vspace, use_batch=False, bint by_transposition=False, rule=None):
        self.by_transposition = by_transposition
        self.rule = rule

    def __cinit__(self, *arguments, **named):
        register(&the_counts.accumulators, <PyObject*>self)
        self.registered = True

    def __dealloc__(self):
        if self.registered:
            unregister(&the_counts.accumulators, <PyObject*>self)

    @property
    def active(self) -> bool:
        """Whether this recorder is on a thread's stack."""
        return self.thread is not None

    def push(self):
        """Enter this thread's stack of recorders.

        Raises
        ------
        ValueError
            If it is on a stack already.
        """
        if self.thread is not None:
            raise ValueError("this accumulator is recording already")
        self.thread = enter(self)

    def pop(self):
        """Leave the stack.

        Raises
        ------
        ValueError
            If it is on none.
        """
        if self.thread is None:
            raise ValueError("this accumulator is not recording")
        leave(self, self.thread)
        self.thread = None

    cdef Tape begin_forwarding(self):
        cdef Recorder tape = Recorder(False, False)
        tape.push()
        return tape

    cdef int end_forwarding(self, Tape tape) except -1:
        (<Recorder>tape).pop()
        return 0


cdef ThreadState enter(recorder):
    cdef ThreadState thread = this_thread()
    thread.recorders = thread.recorders + [recorder]
    thread.update()
    the_counts.entered += 1
    return thread


cdef int leave(recorder, ThreadState thread) except -1:
    thread.recorders = [other for other in thread.recorders if other is not recorder]
    thread.update()
    the_counts.entered -= 1
    return 0


cdef int register(Registry* registry, PyObject* member) except -1:
    cdef void* memory
    if registry.count == registry.capacity:
        memory = realloc(registry.members, (2 * registry.capacity + 8) * sizeof(PyObject*))
        if memory == NULL:
            raise MemoryError()
        registry.members = <PyObject**>memory
        registry.capacity = 2 * registry.capacity + 8
    registry.members[registry.count] = member
    registry.count += 1
    registry.registrations += 1
    return 0


cdef void unregister(Registry* registry, PyObject* member) noexcept:
    cdef int i = 0
    while registry.members[i] != member:
        i += 1
    registry.count -= 1
    registry.registrations += 1
    memmove(registry.members + i, registry.members + i + 1,
            (registry.count - i) * sizeof(PyObject*))


cdef void handle_died(id_t id) noexcept:
    """Delete a tensor's trace from every tape, wherever it records."""
    cdef int i
    cdef Recorder recorder
    cdef bint doomed = False
    for i in range(the_counts.tapes.count):
        doomed |= drop_handle(<Trace>the_counts.tapes.members[i], id)
    # Releasing may run any code, also code that changes the registry: look anew each time.
    while doomed:
        doomed = False
        for i in range(the_counts.tapes.count):
            recorder = <Recorder>the_counts.tapes.members[i]
            if recorder.n_doomed and recorder.pinned == 0:
                recorder.release_doomed()
                doomed = True
                break


cdef void handle_revived(id_t id) noexcept:
    """A saved value without handle got one again: its trace must outlive that one too."""
    cdef int i
    for i in range(the_counts.tapes.count):
        (<Trace>the_counts.tapes.members[i]).revive(id)


cdef void value_died(id_t id) noexcept:
    """Let every accumulator drop the tangent of a value that nobody holds any more."""
    cdef int i = 0
    cdef int registrations
    cdef void* tangent
    while i < the_counts.accumulators.count:
        tangent = NULL
        if tangent_of(<ForwardAccumulator>the_counts.accumulators.members[i], id) != NULL:
            tangent = (<ForwardAccumulator>the_counts.accumulators.members[i]).take(id)
        i += 1
        if tangent != NULL:
            # Releasing may run any code, also code that changes the registry: look anew then.
            registrations = the_counts.accumulators.registrations
            drop(<PyObject*>tangent)
            if registrations != the_counts.accumulators.registrations:
                i = 0


cdef void drop(PyObject* x) noexcept:
    """Let go of a reference while an exception may be on its way."""
    cdef PyObject* kind
    cdef PyObject* error
    cdef PyObject* traceback
    if x.ob_refcnt > 1 or PyErr_Occurred() == NULL:
        Py_DECREF(<object>x)
        return
    PyErr_Fetch(&kind, &error, &traceback)
    Py_DECREF(<object>x)
    PyErr_Restore(kind, error, traceback)


@contextmanager
def stop_recording():
    """Suspend the recorders that this thread has entered; one entered inside records.

    Returns
    -------
    context manager

    Examples
    --------
    >>> import cytape
    >>> x = cytape.constant(3.0)
    >>> with cytape.GradientTape() as tape:
    ...     tape.watch(x)
    ...     with stop_recording():
    ...         y = x * x
    >>> tape.gradient(y, x) is None
    True
    """
    with suspended(*this_thread().recorders):
        yield


@contextmanager
def suspended(*recorders):
    """Suspend some recorders, whichever thread they are on."""
    for recorder in recorders:
        suspend(recorder, 1)
    try:
        yield
    finally:
        for recorder in recorders:
            suspend(recorder, -1)


cdef int suspend(recorder, int change) except -1:
    cdef ThreadState thread
    if type(recorder) is TangentRecorder:
        (<TangentRecorder>recorder).suspensions += change
        thread = (<TangentRecorder>recorder).thread
    else:
        (<Recorder?>recorder).suspensions += change
        thread = (<Recorder>recorder).thread
    if thread is not None:
        thread.update()
    return 0


def possible_gradient_types(tensors) -> int:
    """Tell which derivatives of functions of some tensors may be asked for.

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
            if trace_knows(recorder, tensor.id) or (
                    recorder.watch_accessed_variables and getattr(tensor, "trainable", False)):
                order += 2 if recorder.persistent else 1
                break
    for accumulator in accumulating() or ():
        for tensor in tensors:
            if tangent_of(accumulator, tensor.id) != NULL:
                order += 1 if accumulator.rule is None else 2
                break
    return min(order, 2)


def is_recorded(id_t id) -> bool:
    """Whether a recorder of this thread follows the tensor with this id now."""
    return bool(followers_of(id, id, False))


cdef list followers_of(id_t id, id_t value, bint trainable_variable):
    cdef Recorder recorder
    cdef TangentRecorder accumulator
    cdef list found = []
    for recorder in recording() or ():
        if trace_knows(recorder, id) or trace_knows(recorder, value) or (
                trainable_variable and recorder.watch_accessed_variables):
            found.append(recorder)
    for accumulator in accumulating() or ():
        if tangent_of(accumulator, id) != NULL or tangent_of(accumulator, value) != NULL:
            found.append(accumulator)
    return found


cdef int note_detachment(id_t id, id_t value, bint trainable_variable) except -1:
    for recorder in followers_of(id, value, trainable_variable):
        if type(recorder) is TangentRecorder:
            (<TangentRecorder>recorder).detached = True
        else:
            (<Recorder>recorder).detached = True
    return 0
