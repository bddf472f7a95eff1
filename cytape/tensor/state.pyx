from cytape.core.trace cimport Trace, drop_handle, trace_knows
from libc.stdlib cimport realloc
from libc.string cimport memmove

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

cdef Counts the_counts
cdef PyObject** holders = NULL   # the registered recorders, borrowed: each leaves when it dies
cdef int holder_capacity = 0
cdef object owner = threading.local()  # keeps each thread's state alive as long as the thread

the_counts.entered = the_counts.holding = 0


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
        # A new list each time: whoever iterates over the old one is not disturbed.
        active = [recorder for recorder in self.recorders if (<Recorder>recorder).suspensions == 0]
        self.active = active if active else None
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
            unregister(self)

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
        register(self)
        self.thread = this_thread()
        self.thread.recorders.append(self)
        self.thread.update()
        the_counts.entered += 1

    def pop(self):
        """Leave the stack.

        Raises
        ------
        ValueError
            If it is on none.
        """
        if self.thread is None:
            raise ValueError("this tape is not recording")
        self.thread.recorders = [r for r in self.thread.recorders if r is not self]
        self.thread.update()
        self.thread = None
        the_counts.entered -= 1

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


cdef int register(Recorder recorder) except -1:
    global holders, holder_capacity
    cdef void* memory
    if recorder.registered:
        return 0
    if the_counts.holding == holder_capacity:
        memory = realloc(holders, (2 * holder_capacity + 8) * sizeof(PyObject*))
        if memory == NULL:
            raise MemoryError()
        holders = <PyObject**>memory
        holder_capacity = 2 * holder_capacity + 8
    holders[the_counts.holding] = <PyObject*>recorder
    the_counts.holding += 1
    recorder.registered = True
    return 0


cdef void unregister(Recorder recorder) noexcept:
    cdef int i = 0
    while holders[i] != <PyObject*>recorder:
        i += 1
    the_counts.holding -= 1
    memmove(holders + i, holders + i + 1, (the_counts.holding - i) * sizeof(PyObject*))
    recorder.registered = False


cdef void handle_died(id_t id) noexcept:
    """Delete a tensor's trace from every tape, wherever it records."""
    cdef int i
    cdef Recorder recorder
    cdef bint doomed = False
    for i in range(the_counts.holding):
        doomed |= drop_handle(<Trace>holders[i], id)
    # Releasing may run any code, also code that changes the registry: look anew each time.
    while doomed:
        doomed = False
        for i in range(the_counts.holding):
            if (<Trace>holders[i]).n_doomed and (<Trace>holders[i]).pinned == 0:
                recorder = <Recorder>holders[i]
                recorder.release_doomed()
                doomed = True
                break


cdef void handle_revived(id_t id) noexcept:
    """A saved value without handle got one again: its trace must outlive that one too."""
    cdef int i
    for i in range(the_counts.holding):
        (<Trace>holders[i]).revive(id)


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
    cdef ThreadState thread = this_thread()
    cdef Recorder recorder
    cdef list stopped = list(thread.recorders)
    for recorder in stopped:
        recorder.suspensions += 1
    thread.update()
    try:
        yield
    finally:
        for recorder in stopped:
            recorder.suspensions -= 1
        thread.update()


@contextmanager
def suspended(Recorder recorder not None):
    """Suspend one recorder."""
    recorder.suspensions += 1
    if recorder.thread is not None:
        recorder.thread.update()
    try:
        yield
    finally:
        recorder.suspensions -= 1
        if recorder.thread is not None:
            recorder.thread.update()


def is_recorded(id_t id) -> bool:
    """Whether a recorder of this thread follows the tensor with this id now."""
    cdef Recorder recorder
    for recorder in recording() or ():
        if trace_knows(recorder, id):
            return True
    return False
