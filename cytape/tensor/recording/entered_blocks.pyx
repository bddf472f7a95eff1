cimport cython

from cytape.errors import TapeStateError

cdef Counts* the_counts = counts()


cdef class Block:
    """Base of context managers that may be left in any order, by any task, in any thread."""

    def __cinit__(self, *_, **__):
        self.entries = []

    def __enter__(self):
        self.entries.append(self.enter(this_thread()))
        return self.value

    def __exit__(self, *exception):
        # Tasks may share a block: each leaves its own entry.
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
        """Leave an entry; put back the recorders that were active before it, in `before`."""
        recorders, entry.before = entry.before, None
        leave_entry(entry)
        return put_back(entry.thread, recorders)


cdef bint pass_by(Entry entry) noexcept:
    """Skip entries below this one that have been left; return whether there were any."""
    cdef bint changed = False
    while entry.beneath is not None and entry.beneath.left:
        entry.number_before = entry.beneath.number_before
        entry.beneath = entry.beneath.beneath
        changed = True
    return changed


@cython.final
cdef class building_into(Block):
    """Add the ops of this thread to a graph (None: compute them) within a block.

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
        if pass_by(entry):  # inner ones were left before it
            before = None if entry.beneath is None else entry.beneath.what
        if entry.thread.building is entry:
            entry.thread.building = entry.beneath
            entry.thread.graph = before
        return 0


@cython.final
cdef class building_under(Block):
    """Build a graph under another one of its contexts within a block.

    Parameters
    ----------
    graph : SymbolicGraph
    number : int
        The context.
    value : object, optional
        The object that ``as`` binds.
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
    """Take the recorders that this thread has entered off its stack within a block."""

    cdef Entry enter(self, ThreadState thread):
        cdef Entry entry = new_entry(thread, CUT, None)
        entry.before = thread.recorders
        thread.recorders = []
        thread.update()
        return entry


@cython.final
cdef class push_forwardprop_state(Block):
    """push_forwardprop_state()\n--\n\n\
    Record within a ``with`` block as if no tangent were being computed.

    Accumulators do not track the ops that they run themselves, such as those of a user's rule, and
    neither do recorders entered after them. In this block they do. The block has no effect if no
    tangent is being computed.

    Examples
    --------
    A rule that uses forward mode itself, of the same accumulator:

    >>> import cytape
    >>> x = cytape.constant(3.0)
    >>> with cytape.ForwardAccumulator(x, 1.0) as accumulator:
    ...     y = cytape.constant(27.0)
    ...     def forward_function(dx):
    ...         with cytape.push_forwardprop_state():
    ...             return [accumulator.jvp(x * x * x)]
    ...     _ = cytape.record_operation("Cube", [y], [x], lambda dy: [None], forward_function)
    >>> accumulator.jvp(y)
    Tensor(27.)
    """

    cdef Entry enter(self, ThreadState thread):
        cdef Entry entry = new_entry(thread, SUSPENSION, [])  # without an owner
        entry.before = thread.recorders
        thread.follow_recorders()
        return entry


@cython.final
cdef class suspended(Block):
    """Suspend some recorders, of any thread, within a block.

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
        if self.recorders is None:
            entries = thread.recorders
            if thread.graph is not None:
                # Recorders that record calls of a trace must skip its nodes as well.
                marking = building_under(thread.graph, thread.graph.unrecorded_context())
                marking.__enter__()
        else:
            for recorder in self.recorders:
                entry = entry_of(recorder)
                if entry is None or entry.thread is not thread:
                    elsewhere.append(recorder)
                elif thread.graph is not None and entry not in thread.recorders:
                    raise TapeStateError(
                        "this tape was entered outside of the function that is being traced, "
                        "whose later calls other tapes may record: to keep ops of the function "
                        "from all of them, use cytape.stop_recording() or cytape.stop_gradient")
                else:
                    entries.append(entry)
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


@cython.final
cdef class departures:
    """Note whether values of recorded tensors become plain arrays or numbers in a block.

    A nested block does not report to the outer one, but the outer one's `at_first` is called.

    Parameters
    ----------
    ignored : iterable of Tensor, optional
    at_first : callable, optional
        Called without arguments when the first value leaves, before the program has it.
    covers : callable, optional
        Called with a tensor whose value leaves on purpose, and how. Returns whether recorders need
        not hear of it, as the caller makes sure that no derivative is lost.

    Examples
    --------
    >>> import cytape
    >>> x, y = cytape.constant(3.0), cytape.constant(5.0)
    >>> with cytape.GradientTape():
    ...     with departures() as outer:
    ...         with departures([y]) as inner:
    ...             _ = float(y)
    ...             print(inner.any)
    ...             _ = float(x)
    False
    >>> inner.any, outer.any
    (True, False)
    """

    def __init__(self, ignored=(), at_first=None, covers=None):
        self.ignored = {x.id for x in ignored}
        self.at_first = at_first
        self.covers = covers

    def __enter__(self):
        cdef ThreadState thread = this_thread()
        self.around, thread.departures = thread.departures, self
        return self

    def __exit__(self, *exception):
        cdef ThreadState thread = this_thread()
        thread.departures, self.around = self.around, None

    cdef bint note(self, tensor, str how) except -1:
        """Note a tensor whose value is taken; return whether the block covers it."""
        cdef departures block = self
        if tensor.id in self.ignored:
            return False
        self.any = True
        while block is not None:
            if block.at_first is not None and not block.told:
                block.told = True
                block.at_first()
            block = block.around
        return how is not None and self.covers is not None and self.covers(tensor, how)


@cython.final
cdef class between:
    """between(begin, end)\n--\n\n\
    Call functions at the beginning of a ``with`` block and their counterparts at its end.

    Unlike with `contextlib.contextmanager`, an interrupt cannot skip the end of a block that has
    been entered.

    Parameters
    ----------
    begin, end : iterable of callable
        Functions without arguments. Those of the end are all called, whichever raise; one that an
        interrupt stops is called again.

    Examples
    --------
    >>> numbers = []
    >>> with between([lambda: numbers.append(1)], [numbers.clear]):
    ...     print(numbers)
    [1]
    >>> numbers
    []
    """

    def __init__(self, begin, end):
        self.begin, self.end = tuple(begin), tuple(end)

    def __enter__(self):
        try:
            for function in self.begin:
                function()
        except BaseException:
            self.__exit__()
            raise

    def __exit__(self, *exception):
        cdef list stopped = []
        error = None
        for function in self.end:
            try:
                function()
            except BaseException as raised:
                error = raised
                stopped.append(function)
        for function in stopped:
            function()
        if error is not None:
            raise error


def stop_recording():
    """Suspend the recorders that this thread has entered; recorders entered inside record.

    In a traced function it also holds for recorders of later calls.

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
