cimport cython
from cpython.ref cimport Py_DECREF
from cytape.core.accumulator cimport tangent_of
from cytape.core.trace cimport trace_knows

import threading
from contextvars import ContextVar

from cytape.errors import TapeStateError

cdef extern from *:
    """
    #if defined(_MSC_VER)
    static __declspec(thread) PyObject *cytape_thread_state = NULL;
    #else
    static __thread PyObject *cytape_thread_state = NULL;
    #endif
    """
    PyObject* cytape_thread_state

cdef extern from "Python.h":
    int PyContextVar_Get(object var, PyObject* default, PyObject** value) except -1
    object PyContextVar_Set(object var, object value)

NO_GRADIENTS, FIRST_ORDER, HIGHER_ORDER = range(3)
MOST_DETACHED = 16  # tensors that a recorder notes, which stay alive with all that led to them

cdef Counts* the_counts = counts()
cdef object innermost = ContextVar("cytape_innermost", default=None)  # Entry, of this context
cdef object owner = threading.local()


@cython.final
cdef class Keeper:
    """Keeps a thread's state as long as the thread."""

    def __cinit__(self, ThreadState state):
        self.state = state

    def __dealloc__(self):
        global cytape_thread_state
        # The thread ends, but its finalizers may still record.
        if cytape_thread_state == <PyObject*>self.state:
            cytape_thread_state = NULL


@cython.trashcan(True)
@cython.final
cdef class Entry:
    pass


cdef class ThreadState:
    def __cinit__(self):
        self.recorders = []
        self.suspended = []
        self.scopes = {}
        self.own = PyThreadState_Get()

    cdef int update(self) except -1:
        # New lists each time: whoever iterates over the old ones is not disturbed.
        cdef TangentRecorder accumulator
        cdef Recorder tape
        cdef list active = [], accumulating = []
        for recorder in self.recorders:
            if type(recorder) is TangentRecorder:
                accumulator = recorder
                if accumulator.suspensions == 0 and accumulator.entry not in self.suspended:
                    accumulator.outermost = not active and not accumulating
                    accumulating.append(accumulator)
            else:
                tape = recorder
                if tape.suspensions == 0 and tape.entry not in self.suspended:
                    active.append(recorder)
        self.active = active if active else None
        self.accumulating = accumulating if accumulating else None
        return 0

    cdef int follow_context(self) except -1:
        """Take over what was entered in the context that is now the present one."""
        cdef dict scopes = {}
        cdef Entry entry, graph = None
        if self.held:
            return 0
        self.version = self.own.context_ver
        self.follow_recorders()
        entry = innermost_entry()
        while entry is not None:
            if entry.thread is self and not entry.left:
                if entry.kind == SCOPE:
                    scopes.setdefault(entry.what, entry)
                elif entry.kind == GRAPH and graph is None:
                    graph = entry
            entry = entry.outer
        if self.building is not graph:
            self.building = graph
            self.graph = None if graph is None else graph.what
        for scoped in {**self.scopes, **scopes}:
            entry = scopes.get(scoped)
            if self.scopes.get(scoped) is not entry:
                scoped.enter_context(0 if entry is None else entry.number)
        self.scopes = scopes
        return 0

    cdef int follow_recorders(self) except -1:
        """Find out who records, from the entries of the present context."""
        cdef Entry entry = innermost_entry()
        cdef list recorders = []
        self.suspended = []
        while entry is not None and not (entry.kind == CUT and entry.thread is self):
            if entry.thread is self:
                if entry.kind == RECORDER:
                    recorders.append(entry.what)
                elif entry.kind == SUSPENSION:
                    self.suspended = self.suspended + entry.what
            while entry.outer is not None and entry.outer.left:
                entry.outer = entry.outer.outer
            entry = entry.outer
        recorders.reverse()
        self.recorders = recorders
        return self.update()

    cdef int release_hold(self) except -1:
        """Look at contexts again, where something was entered or left meanwhile."""
        self.held -= 1
        if self.held == 0 and self.disturbed:
            self.disturbed = False
            self.version = NO_VERSION
        return 0


cdef ThreadState this_thread():
    global cytape_thread_state
    cdef ThreadState thread
    if cytape_thread_state == NULL:
        thread = ThreadState()
        owner.keeper = Keeper(thread)
        cytape_thread_state = <PyObject*>thread
    thread = <ThreadState>cytape_thread_state
    if thread.own.context_ver != thread.version:
        thread.follow_context()
    return thread


cdef list recording():
    cdef PyObject* thread
    if the_counts.entered == 0:
        return None
    thread = cytape_thread_state  # once: finding a thread's own variable takes a call
    if thread == NULL:
        return None
    if (<ThreadState>thread).own.context_ver != (<ThreadState>thread).version:
        (<ThreadState>thread).follow_context()
    return (<ThreadState>thread).active


cdef list accumulating():
    cdef PyObject* thread
    if the_counts.entered == 0:
        return None
    thread = cytape_thread_state
    if thread == NULL:
        return None
    if (<ThreadState>thread).own.context_ver != (<ThreadState>thread).version:
        (<ThreadState>thread).follow_context()
    return (<ThreadState>thread).accumulating


cdef object building():
    cdef PyObject* thread
    if the_counts.symbolic == 0:
        return None
    thread = cytape_thread_state
    if thread == NULL:
        return None
    if (<ThreadState>thread).own.context_ver != (<ThreadState>thread).version:
        (<ThreadState>thread).follow_context()
    return (<ThreadState>thread).graph


cdef bint observed():
    return building() is not None or recording() is not None or accumulating() is not None


# ---- entering and leaving, in any order

cdef Entry innermost_entry():
    cdef PyObject* value
    cdef Entry entry
    PyContextVar_Get(innermost, NULL, &value)
    entry = <Entry>value
    Py_DECREF(entry)
    while entry is not None and entry.left:
        entry = entry.outer
    return entry


cdef Entry new_entry(ThreadState thread, int kind, what):
    cdef Entry entry = Entry.__new__(Entry)
    entry.thread = thread
    entry.kind = kind
    entry.what = what
    entry.outer = innermost_entry()
    PyContextVar_Set(innermost, entry)
    thread.disturbed = thread.held > 0
    return entry


cdef bint pass_by(Entry entry) noexcept:
    """Look beneath an entry for one that has not been left; False: it is what it was."""
    cdef bint changed = False
    while entry.beneath is not None and entry.beneath.left:
        entry.number_before = entry.beneath.number_before
        entry.beneath = entry.beneath.beneath
        changed = True
    return changed


cdef int leave_entry(Entry entry) except -1:
    entry.left = True
    entry.what = None
    if entry.thread.held:
        entry.thread.disturbed = True
    return 0


cdef class Block:
    """What ``with`` statements enter; they may be left in any order, by any task, in any thread."""

    def __cinit__(self, *_, **__):
        self.entries = []

    def __enter__(self):
        self.entries.append(self.enter(this_thread()))
        return self.value

    def __exit__(self, *exception):
        # Tasks may share a block: each leaves what it has entered itself.
        cdef Entry entry = innermost_entry()
        while entry is not None and entry not in self.entries:
            entry = entry.outer
        if entry is None:
            if not self.entries:
                raise RuntimeError(
                    f"a {type(self).__name__} block was left that has not been entered")
            entry = self.entries[len(self.entries) - 1]
        self.entries.remove(entry)
        self.leave(entry)

    cdef Entry enter(self, ThreadState thread):
        raise NotImplementedError

    cdef int leave(self, Entry entry) except -1:
        raise NotImplementedError


@cython.final
cdef class building_into(Block):
    """Add the ops of this thread to a graph (None: compute them) for the length of a block.

    Parameters
    ----------
    graph : SymbolicGraph or None
    """

    def __init__(self, graph):
        self.value = graph

    cdef Entry enter(self, ThreadState thread):
        cdef Entry entry = new_entry(thread, GRAPH, self.value)
        entry.before = thread.graph
        entry.beneath = thread.building
        thread.building = entry
        thread.graph = self.value
        the_counts.symbolic += 1
        return entry

    cdef int leave(self, Entry entry) except -1:
        the_counts.symbolic -= 1
        leave_entry(entry)
        before, entry.before = entry.before, None
        if pass_by(entry):  # others were left before it, though they were entered later
            before = None if entry.beneath is None else entry.beneath.what
        if entry.thread.building is entry:
            entry.thread.building = entry.beneath
            entry.thread.graph = before
        return 0


@cython.final
cdef class building_under(Block):
    """Build a graph under another of its contexts for the length of a block.

    Parameters
    ----------
    graph : SymbolicGraph
    number : int
        The context.
    value : object, optional
        What the ``with`` statement hands out.
    """

    def __init__(self, graph, int32_t number, value=None):
        self.graph = graph
        self.number = number
        self.value = value

    cdef Entry enter(self, ThreadState thread):
        cdef Entry entry = new_entry(thread, SCOPE, self.graph)
        entry.number = self.number
        entry.beneath = thread.scopes.get(self.graph)
        entry.number_before = self.graph.enter_context(self.number)
        thread.scopes[self.graph] = entry
        return entry

    cdef int leave(self, Entry entry) except -1:
        cdef dict scopes = entry.thread.scopes
        leave_entry(entry)
        pass_by(entry)
        if scopes.get(self.graph) is entry:
            self.graph.enter_context(entry.number_before)
            if entry.beneath is None:
                del scopes[self.graph]
            else:
                scopes[self.graph] = entry.beneath
        return 0


@cython.final
cdef class unrecorded(Block):
    """Take the recorders that this thread has entered off its stack for the length of a block."""

    cdef Entry enter(self, ThreadState thread):
        cdef Entry entry = new_entry(thread, CUT, None)
        entry.before = thread.recorders
        thread.recorders = []
        thread.update()
        return entry

    cdef int leave(self, Entry entry) except -1:
        recorders, entry.before = entry.before, None
        leave_entry(entry)
        return put_back(entry.thread, recorders)


@cython.final
cdef class suspended(Block):
    """Suspend some recorders, whichever thread they are on, for the length of a block.

    Parameters
    ----------
    *recorders : Recorder or TangentRecorder
    """

    def __init__(self, *recorders):
        self.recorders = recorders

    cdef Entry enter(self, ThreadState thread):
        cdef list entries = [], elsewhere = []
        cdef Entry entry
        cdef building_under marking = None
        for recorder in thread.recorders if self.recorders is None else self.recorders:
            entry = entry_of(recorder)
            if entry is not None and entry.thread is thread:
                if thread.graph is not None and recorder not in thread.recorders:
                    raise TapeStateError(
                        "this tape was entered outside of the function that is being traced, "
                        "whose later calls other tapes may record: to keep ops of the function "
                        "from all of them, use cytape.stop_recording() or cytape.stop_gradient")
                entries.append(entry)
            else:
                elsewhere.append(recorder)
        if self.recorders is None and thread.graph is not None:
            # Those who record calls of what is traced are to pass by its nodes as well.
            marking = building_under(thread.graph, thread.graph.unrecorded_context())
            marking.__enter__()
        entry = new_entry(thread, SUSPENSION, entries)
        entry.before = thread.suspended, elsewhere, marking
        thread.suspended = thread.suspended + entries
        thread.update()
        for recorder in elsewhere:
            suspend(recorder, 1)
        return entry

    cdef int leave(self, Entry entry) except -1:
        before, elsewhere, marking = entry.before
        entry.before = None
        leave_entry(entry)
        if marking is not None:
            marking.__exit__(None, None, None)
        for recorder in elsewhere:
            suspend(recorder, -1)
        entry.thread.suspended = before
        return put_back(entry.thread, entry.thread.recorders)


def stop_recording():
    """Suspend the recorders that this thread has entered; one entered inside records.

    In a function that is being traced it holds for those, too, that record its calls later.

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
    cdef suspended block = suspended()
    block.recorders = None
    return block


cdef int suspend(recorder, int change) except -1:
    cdef Entry entry = entry_of(recorder)
    if type(recorder) is TangentRecorder:
        (<TangentRecorder>recorder).suspensions += change
    else:
        (<Recorder>recorder).suspensions += change
    if entry is not None:
        entry.thread.update()
    return 0


cdef int put_back(ThreadState thread, list recorders) except -1:
    """Find out who records after a block, which may have been one of this context or not."""
    if thread.held == 0 and <PyObject*>thread == cytape_thread_state:
        if thread.own.context_ver == thread.version:
            return thread.follow_recorders()
        return 0  # a look at another context is due
    thread.recorders = [recorder for recorder in recorders if entry_of(recorder) is not None]
    thread.version = NO_VERSION  # look again, when it is that thread's turn
    return thread.update()


cdef int begin_computing(TangentRecorder recorder) except -1:
    cdef ThreadState thread = this_thread()
    thread.held += 1
    thread.recorders = thread.recorders[:thread.recorders.index(recorder)]
    return thread.update()


cdef int begin_recording_alone(Recorder recorder) except -1:
    cdef ThreadState thread = this_thread()
    thread.held += 1
    thread.recorders = [recorder]
    return thread.update()


cdef int end_computing(list recorders) except -1:
    cdef ThreadState thread = this_thread()
    for recorder in recorders:
        if entry_of(recorder) is None:  # it left while it was off the stack
            recorders = [other for other in recorders if entry_of(other) is not None]
            break
    thread.recorders = recorders
    thread.release_hold()
    return thread.update()


cdef Entry entry_of(recorder):
    """Where a recorder stands on a stack, or None."""
    if type(recorder) is TangentRecorder:
        return (<TangentRecorder>recorder).entry
    return (<Recorder?>recorder).entry


def current_graph():
    """Return the graph that this thread builds, None if it computes."""
    return building()


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
        return self.entry is not None

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
        if self.entry is not None:
            raise ValueError("this tape is recording already")
        if not self.registered:
            register(&the_counts.tapes, <PyObject*>self)
            self.registered = True
        self.entry = enter(self)

    def pop(self):
        """Leave the stack.

        Raises
        ------
        ValueError
            If it is on none.
        """
        if self.entry is None:
            raise ValueError("this tape is not recording")
        entry, self.entry = self.entry, None
        leave(self, entry)

    def __enter__(self):
        self.push()
        return self

    def __exit__(self, *exception):
        if self.entry is not None:
            self.pop()

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
    >>> from cytape.ops.engine.forward import fetch
    >>> from cytape.ops.engine.gradients import tensor_vspace
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
        return self.entry is not None

    def push(self):
        """Enter this thread's stack of recorders.

        Raises
        ------
        ValueError
            If it is on a stack already.
        """
        if self.entry is not None:
            raise ValueError("this accumulator is recording already")
        self.entry = enter(self)

    def pop(self):
        """Leave the stack.

        Raises
        ------
        ValueError
            If it is on none.
        """
        if self.entry is None:
            raise ValueError("this accumulator is not recording")
        entry, self.entry = self.entry, None
        leave(self, entry)

    def __enter__(self):
        self.push()
        return self

    def __exit__(self, *exception):
        if self.entry is not None:
            self.pop()

    cdef Tape begin_forwarding(self):
        cdef Recorder tape = Recorder(False, False)
        tape.push()
        return tape

    cdef int end_forwarding(self, Tape tape) except -1:
        (<Recorder>tape).pop()
        return 0


# The methods `__enter__` and `__exit__` of what users enter to have its `_recorder` record. They
# are not in Python, where an interrupt might come between the recorder's entering and the beginning
# of the block, which then would never be left.

def enter_recording(self):
    """Have the recorder of a tape or accumulator record."""
    recorder = self._recorder
    if recorder is None:  # it has served
        recorder = self._recorder = self._new_recorder()
    self._entered = True
    recorder.push()
    return self


def leave_recording(self, *exception):
    """Have it record no more."""
    recorder = self._recorder
    if recorder is not None and entry_of(recorder) is not None:
        recorder.pop()


cdef Entry enter(recorder):
    cdef ThreadState thread = this_thread()
    cdef Entry entry = new_entry(thread, RECORDER, recorder)
    thread.recorders = thread.recorders + [recorder]
    thread.update()
    the_counts.entered += 1
    return entry


cdef int leave(recorder, Entry entry) except -1:
    leave_entry(entry)
    entry.thread.recorders = [other for other in entry.thread.recorders if other is not recorder]
    entry.thread.update()
    the_counts.entered -= 1
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


def possible_modes() -> tuple:
    """Tell by which modes this thread may ask for derivatives of what it computes next.

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
    cdef bint reverse = recording() is not None, forward = False
    for accumulator in accumulating() or ():
        forward = True
        reverse |= accumulator.by_transposition or accumulator.rule is not None
    return reverse, forward


def anybody_records() -> bool:
    """Whether this thread has entered a recorder, whatever that follows."""
    return recording() is not None or accumulating() is not None


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


cdef int note_detachment(tensor, id_t id, id_t value, bint trainable_variable) except -1:
    cdef dict noted
    for recorder in followers_of(id, value, trainable_variable):
        if type(recorder) is TangentRecorder:
            (<TangentRecorder>recorder).detached = True
        else:
            noted = (<Recorder>recorder).detached
            if noted is not None and len(noted) < MOST_DETACHED:
                noted[id] = tensor
    return 0
