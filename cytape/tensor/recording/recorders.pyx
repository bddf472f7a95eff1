cimport cython
from cpython.list cimport PyList_GET_ITEM, PyList_GET_SIZE
from cpython.ref cimport Py_INCREF
from cytape.core.accumulator cimport tangent_of
from cytape.core.op_store cimport is_known, slot_of
from cytape.core.idtable cimport idtable_add, idtable_free, idtable_get, idtable_init
from cytape.core.typedefs cimport NO_INDEX

from cytape.tensor.values.value cimport new_id

cdef Counts* the_counts = counts()
cdef object MARK = True  # in place of a tangent if only reads are noted


cdef Entry entry_of(recorder):
    if type(recorder) is TangentRecorder:
        return (<TangentRecorder>recorder).entry
    return (<Recorder?>recorder).entry


cdef int suspend(recorder, int change) except -1:
    cdef Entry entry = entry_of(recorder)
    if type(recorder) is TangentRecorder:
        (<TangentRecorder>recorder).suspensions += change
    else:
        (<Recorder>recorder).suspensions += change
    if entry is not None:
        entry.thread.update()
    return 0


cdef Entry entry_for(ThreadState thread, recorder):
    """Return a new entry, not yet on a stack."""
    cdef Entry entry = Entry.__new__(Entry)
    entry.thread = thread
    entry.kind = RECORDER
    entry.what = recorder
    if type(recorder) is TangentRecorder:
        entry.suspensions = &(<TangentRecorder>recorder).suspensions
        entry.outermost = &(<TangentRecorder>recorder).outermost
    else:
        entry.suspensions = &(<Recorder>recorder).suspensions
    return entry


# ---- the common part of tapes and accumulators: methods of both classes

def is_active(self) -> bool:
    """Return whether this recorder is on a thread's stack."""
    return entry_of(self) is not None


def push(self):
    """Enter this thread's stack of recorders.

    Raises
    ------
    ValueError
        If it is on a stack already.
    """
    enter(self)


def pop(self):
    """Leave the stack.

    Raises
    ------
    ValueError
        If it is on none.
    """
    leave(self)


def entered(self):
    """Enter this thread's stack of recorders, at the beginning of a block."""
    enter(self)
    return self


def left(self, *exception):
    """Leave the stack, unless the block did."""
    if entry_of(self) is not None:
        leave(self)


cdef int enter(recorder) except -1:
    cdef Entry entry
    if entry_of(recorder) is not None:
        raise ValueError(f"this {kind_of(recorder)} is recording already")
    entry = entry_for(this_thread(), recorder)
    if type(recorder) is TangentRecorder:
        (<TangentRecorder>recorder).entry = entry
    else:
        (<Recorder>recorder).entry = entry
        (<Recorder>recorder).hear_of_deaths()
    enter_entry(entry)
    entry.thread.recorders = [*entry.thread.recorders, entry]
    entry.thread.update()
    the_counts.entered += 1
    return 0


cdef int leave(recorder) except -1:
    cdef Entry entry = entry_of(recorder)
    if entry is None:
        raise ValueError(f"this {kind_of(recorder)} is not recording")
    if type(recorder) is TangentRecorder:
        (<TangentRecorder>recorder).entry = None
    else:
        (<Recorder>recorder).entry = None
    leave_entry(entry)
    entry.thread.recorders = still_entered(entry.thread.recorders)
    entry.thread.update()
    the_counts.entered -= 1
    return 0


cdef str kind_of(recorder):
    return "accumulator" if type(recorder) is TangentRecorder else "tape"


# ---- the two kinds

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

    active = property(is_active)
    push = push
    pop = pop
    __enter__ = entered
    __exit__ = left

    def __init__(self, bint persistent=False, bint watch_accessed_variables=True):
        self.persistent = persistent
        self.watch_accessed_variables = watch_accessed_variables

    def __dealloc__(self):
        if self.registered:
            unregister(&the_counts.tapes, <PyObject*>self)

    @property
    def variables(self) -> list:
        """The variables watched so far, in order of first watch."""
        return list((self.watched or {}).values())

    def watch_variable(self, variable):
        """Watch a variable, trainable or not.

        Parameters
        ----------
        variable : Variable
        """
        self.watch_variable_of(variable, variable.id)

    cdef int hear_of_deaths(self) except -1:
        if not self.registered:
            register(&the_counts.tapes, <PyObject*>self)
            self.registered = True
        return 0

    cdef int watch_tensor(self, id_t id) except -1:
        cdef Py_ssize_t slot = slot_of(self, id)
        if slot == NO_INDEX or self.slots[slot].op < 0:
            return self.watch_id(id)
        if self.watched_results is None:
            self.watched_results = set()
        self.watched_results.add(id)
        return 0

    cdef int watch_variable_of(self, object variable, id_t id) except -1:
        if self.watched is None:
            self.watched = {}
        if id not in self.watched:
            self.watch_id(id)
            self.watched[id] = variable
        return 0


cdef Recorder new_recorder(bint persistent, bint watch_accessed_variables):
    cdef Recorder recorder = Recorder.__new__(Recorder)
    recorder.persistent = persistent
    recorder.watch_accessed_variables = watch_accessed_variables
    return recorder


@cython.final
cdef class TangentRecorder(ForwardAccumulator):
    """An accumulator on a thread's stack of recorders.

    Parameters
    ----------
    vspace : VSpace
    use_batch : bool, optional
        Whether tangents have a leading axis of directions.
    by_transposition : bool, optional
        Whether to derive the tangents of every op from its backward function, also if it has a
        forward rule of its own.
    rule : callable, optional
        Rule applied to each op instead of the tangent rule. Called with the op, its inputs and
        outputs (tensors), the stored object of each input (None if there is none) and the
        attributes; returns the object to store for each output.

    Examples
    --------
    >>> import cytape
    >>> from cytape.ops.calls.tangents import fetch
    >>> from cytape.ops.engine.tensor_vspace import tensor_vspace
    >>> x = cytape.constant(3.0)
    >>> recorder = TangentRecorder(tensor_vspace)
    >>> recorder.watch(x.id, cytape.constant(10.0))
    >>> recorder.push()
    >>> y = x * x
    >>> recorder.pop()
    >>> fetch(recorder, y.id)
    Tensor(60.)
    """

    active = property(is_active)
    push = push
    pop = pop
    __enter__ = entered
    __exit__ = left

    def __init__(self, vspace, use_batch=False, bint by_transposition=False, rule=None,
                 *, Reads reads=None):
        self.by_transposition = by_transposition
        self.rule = rule
        if reads is not None:
            self.reads = reads
            self.rule = reads  # replaces the ops' own tangents
            self.asks_others = True

    def __cinit__(self, *arguments, **named):
        register(&the_counts.accumulators, <PyObject*>self)
        self.registered = True

    def __dealloc__(self):
        if self.registered:
            unregister(&the_counts.accumulators, <PyObject*>self)

    cdef void* tangent_elsewhere(self, id_t id) noexcept:
        return <void*><PyObject*>MARK if self.reads.follow(id) else NULL

    cdef Tape begin_forwarding(self):
        cdef Recorder tape = new_recorder(False, False)
        tape.transposes = True
        enter(tape)
        return tape

    cdef int end_forwarding(self, Tape tape) except -1:
        leave(tape)
        return 0


cdef class Reads:
    """Inputs of a checkpointed call that outer recorders track.

    A `TangentRecorder` that is created with it notes them while it is on the thread's stack.

    Examples
    --------
    >>> import cytape
    >>> from cytape.ops.engine.tensor_vspace import tensor_vspace
    >>> x, y, v = cytape.constant(2.0), cytape.constant(3.0), cytape.Variable(5.0)
    >>> with cytape.GradientTape() as tape:
    ...     tape.watch(x)
    ...     reads = Reads()
    ...     with cytape.stop_recording(), TangentRecorder(tensor_vspace, reads=reads):
    ...         z = x * y * v
    >>> reads.found, reads.found_variables
    ([Tensor(2.)], [(Variable(5.), Tensor(5.))])
    """

    def __cinit__(self):
        cdef ThreadState thread = this_thread()
        cdef Reads reads
        self.around = [] if thread.active is None else list(thread.active)
        for recorder in self.around:
            self.watch_variables |= (<Recorder>recorder).watch_accessed_variables
        for recorder in thread.accumulating or ():
            reads = (<TangentRecorder>recorder).reads
            if reads is not None:
                self.watch_variables |= reads.watch_variables
            if reads is not None and reads.silent:
                self.around += reads.around
            else:
                self.around.append(recorder)
        self.tensors = {}
        self.variables = {}

    @property
    def found(self) -> list:
        """The tensors that the recorders track, in the order of the first read."""
        return list(self.tensors.values())

    @property
    def found_variables(self) -> list:
        """All variables that were read or assigned to, each with its value before that."""
        return list(self.variables.values())

    def follows(self, id_t id) -> bool:
        """Return whether one of the recorders tracks a tensor."""
        return self.follow(id)

    cdef bint follow(self, id_t id) noexcept:
        cdef PyObject* recorder
        cdef Py_ssize_t i
        for i in range(PyList_GET_SIZE(self.around)):
            recorder = PyList_GET_ITEM(self.around, i)
            if type(<object>recorder) is TangentRecorder:
                if tangent_of(<TangentRecorder>recorder, id) != NULL:
                    return True
            elif is_known(<Recorder>recorder, id):
                return True
        return False

    cdef int found_variable(self, bint trainable, Value value) except -1:
        return 0

    cdef int called(self, list inputs, list outputs) except -1:
        return 0

    cdef int renamed(self, id_t id, id_t other) except -1:
        return 0


@cython.final
cdef class Origins(Reads):
    """Tensors that the results of a program depend on.

    Among `sources`; by default among all tracked tensors that are older than the program, except
    its arguments. A `TangentRecorder` that is created with it notes them.

    Parameters
    ----------
    sources : iterable of Tensor, optional
    arguments : iterable of Tensor, optional
    graph : SymbolicGraph, optional
        The graph that the program adds to. Recorders may track any tensor of it later, so all
        count.

    Examples
    --------
    >>> import cytape
    >>> from cytape.ops.engine.tensor_vspace import tensor_vspace
    >>> x, w, b = cytape.constant(2.0), cytape.constant(3.0), cytape.constant(5.0)
    >>> with cytape.GradientTape() as tape:
    ...     tape.watch([x, w, b])
    ...     origins = Origins(arguments=[x])
    ...     with TangentRecorder(tensor_vspace, reads=origins):
    ...         unused = b * 2.0
    ...         y = x * w
    >>> origins.of(y)
    [Tensor(3.)]
    """

    def __cinit__(self, sources=None, arguments=(), graph=None):
        idtable_init(&self.places)
        self.silent = True
        self.any = graph is not None
        self.sets = [frozenset()]
        for x in arguments:
            self.put(x.id, 0)
        if sources is None:
            self.first = new_id()
        else:
            for x in sources:
                self.tensors[x.id] = x
                self.sets.append(frozenset([x.id]))
                self.put(x.id, len(self.sets) - 1)

    def __dealloc__(self):
        idtable_free(&self.places)

    def of(self, result) -> list:
        """Return the tensors that a result depends on.

        Parameters
        ----------
        result : Tensor

        Returns
        -------
        list of Tensor
        """
        cdef index_t place = idtable_get(&self.places, result.id)
        if place > 0:
            return [self.tensors[id] for id in self.sets[place]]
        return [result] if self.follow(result.id) else []

    cdef int put(self, id_t id, index_t place) except -1:
        if idtable_get(&self.places, id) == NO_INDEX:
            idtable_add(&self.places, id, place)
        return 0

    cdef bint follow(self, id_t id) noexcept:
        cdef index_t place = idtable_get(&self.places, id) if id >= 0 else 0
        if place != NO_INDEX:
            return place > 0
        return id < self.first and (self.any or Reads.follow(self, id))

    cdef int found_variable(self, bint trainable, Value value) except -1:
        return self.put(value.id, 0) if trainable else 0

    cdef int called(self, list inputs, list outputs) except -1:
        cdef Value value
        cdef index_t place
        found = frozenset()
        for value in inputs:
            if value.spec.trainable and self.follow(value.id):
                place = idtable_get(&self.places, value.id)
                found |= {value.id} if place == NO_INDEX else self.sets[place]
        if found:
            self.sets.append(found)
            for value in outputs:
                self.put(value.id, len(self.sets) - 1)
        return 0

    cdef int renamed(self, id_t id, id_t other) except -1:
        """Treat a symbolic tensor like the tensor that it was captured from."""
        cdef index_t place = idtable_get(&self.places, id)
        if place == NO_INDEX and self.follow(id):
            self.sets.append(frozenset([other]))
            place = len(self.sets) - 1
        return 0 if place == NO_INDEX else self.put(other, place)


cdef int mark(TangentRecorder accumulator, id_t id) except -1:
    if tangent_of(accumulator, id) == NULL:
        Py_INCREF(MARK)
        accumulator.store(id, <void*><PyObject*>MARK)
    return 0


# ---- ops of a recorder are recorded only by recorders entered before it

cdef int begin_computing(TangentRecorder recorder) except -1:
    cdef ThreadState thread = this_thread()
    thread.held += 1
    thread.recorders = thread.recorders[:thread.recorders.index(recorder.entry)]
    return thread.update()


cdef int begin_recording_alone(Recorder recorder) except -1:
    cdef ThreadState thread = this_thread()
    thread.held += 1
    thread.recorders = [entry_for(thread, recorder)]
    return thread.update()


cdef int end_computing(list recorders) except -1:
    cdef ThreadState thread = this_thread()
    cdef Entry entry
    for entry in recorders:
        if entry.left:  # left while it was off the stack
            recorders = still_entered(recorders)
            break
    thread.recorders = recorders
    thread.release_hold()
    return thread.update()
