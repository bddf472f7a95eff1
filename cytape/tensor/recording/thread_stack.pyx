cimport cython
from cpython.ref cimport Py_DECREF

import threading
from contextvars import ContextVar

cdef extern from *:
    """
    #if defined(_MSC_VER)
    static __declspec(thread) PyObject *cytape_thread_state = NULL;
    #else  /* not of the "initial-exec" model: libraries loaded before may have used up its room */
    static __thread PyObject *cytape_thread_state = NULL;
    #endif
    """
    PyObject* cytape_thread_state

cdef extern from "Python.h":
    int PyContextVar_Get(object var, PyObject* default, PyObject** value) except -1
    object PyContextVar_Set(object var, object value)

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
        # The thread ends, but its finalizers may record.
        if cytape_thread_state == <PyObject*>self.state:
            cytape_thread_state = NULL


@cython.freelist(16)
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
        # New lists each time: a running iteration over the old ones is not disturbed.
        cdef Entry entry
        cdef list active = None, accumulating = None
        for entry in self.recorders:
            if entry.suspensions[0] == 0 and entry not in self.suspended:
                if entry.outermost == NULL:
                    active = with_another(active, entry.what)
                else:
                    entry.outermost[0] = active is None and accumulating is None
                    accumulating = with_another(accumulating, entry.what)
        self.active = active
        self.accumulating = accumulating
        return 0

    cdef int follow_context(self) except -1:
        """Set the state from the entries of the current context."""
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
        """Collect the active recorders from the entries of the present context."""
        cdef Entry entry = innermost_entry()
        cdef list recorders = []
        self.suspended = []
        while entry is not None and not (entry.kind == CUT and entry.thread is self):
            if entry.thread is self:
                if entry.kind == RECORDER:
                    recorders.append(entry)
                elif entry.kind == SUSPENSION:
                    self.suspended = self.suspended + entry.what
            while entry.outer is not None and entry.outer.left:
                entry.outer = entry.outer.outer
            entry = entry.outer
        recorders.reverse()
        self.recorders = recorders
        return self.update()

    cdef int release_hold(self) except -1:
        """Check contexts again, if entries were added or left in between."""
        self.held -= 1
        if self.held == 0 and self.disturbed:
            self.disturbed = False
            self.version = NO_VERSION
        return 0


cdef inline list with_another(list recorders, recorder):
    if recorders is None:
        return [recorder]
    recorders.append(recorder)
    return recorders


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


cdef inline PyObject* state_in_context() except? NULL:
    """Return this thread's state for the present context; NULL if the thread entered nothing."""
    cdef PyObject* thread = cytape_thread_state  # read once, since it takes a call
    if thread != NULL and (
            (<ThreadState>thread).own.context_ver != (<ThreadState>thread).version):
        (<ThreadState>thread).follow_context()
    return thread


cdef list recording():
    cdef PyObject* thread = state_in_context() if the_counts.entered else NULL
    return None if thread == NULL else (<ThreadState>thread).active


cdef list accumulating():
    cdef PyObject* thread = state_in_context() if the_counts.entered else NULL
    return None if thread == NULL else (<ThreadState>thread).accumulating


cdef object building():
    cdef PyObject* thread = state_in_context() if the_counts.symbolic else NULL
    return None if thread == NULL else (<ThreadState>thread).graph


cdef bint observed():
    cdef PyObject* thread = NULL
    if the_counts.entered or the_counts.symbolic:
        thread = state_in_context()
    return thread != NULL and (
        (<ThreadState>thread).active is not None or (<ThreadState>thread).graph is not None
        or (<ThreadState>thread).accumulating is not None)


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


cdef int enter_entry(Entry entry) except -1:
    entry.outer = innermost_entry()
    PyContextVar_Set(innermost, entry)
    entry.thread.disturbed = entry.thread.held > 0
    return 0


cdef Entry new_entry(ThreadState thread, int kind, what):
    cdef Entry entry = Entry.__new__(Entry)
    entry.thread = thread
    entry.kind = kind
    entry.what = what
    enter_entry(entry)
    return entry


cdef int leave_entry(Entry entry) except -1:
    entry.left = True
    entry.what = None
    if entry.thread.held:
        entry.thread.disturbed = True
    return 0


cdef list still_entered(list entries):
    cdef Entry entry
    return [entry for entry in entries if not entry.left]


cdef int put_back(ThreadState thread, list recorders) except -1:
    """Collect the active recorders after a block, of this context or another."""
    if thread.held == 0 and <PyObject*>thread == cytape_thread_state:
        if thread.own.context_ver == thread.version:
            return thread.follow_recorders()
        return 0  # the state is recomputed at the next check
    thread.recorders = still_entered(recorders)
    thread.version = NO_VERSION  # recompute when that thread runs
    return thread.update()


def current_graph():
    """Return the graph that this thread builds, None if it computes."""
    return building()
