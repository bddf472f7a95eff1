from .idtable cimport idtable_add, idtable_free, idtable_init, idtable_remove
from .memory cimport grow, release
from .tape cimport taken
from .op_store cimport Op, check_id
from .vspace cimport WANTED, BackwardCall, takes_none
from cpython.ref cimport Py_DECREF, Py_INCREF, PyObject
from libc.stdlib cimport calloc, free
from libc.string cimport memset

from cytape.core.vspace import is_trainable
from cytape.errors import NotDifferentiableError, TapeStateError


cdef class ForwardAccumulator:
    """Tangents of a language-agnostic program: ids in, Jacobian-vector products out.

    Parameters
    ----------
    vspace : VSpace
    use_batch : bool, optional
        Passed to every forward function: tangents then have a leading axis of directions.

    See Also
    --------
    Tape : reverse mode.

    Notes
    -----
    Not thread-safe: one thread at a time may use an accumulator (the GIL sees to it).

    A tangent must not refer to its accumulator: the garbage collector does not see tangents.

    Every op is offered to all active accumulators in the order in which these were entered. The ops
    that compute a tangent are offered to the accumulators entered earlier only.

    Examples
    --------
    The derivative of ``x * x`` at 3, along a tangent of 10; `x` has id 1, the result id 2:

    >>> from cytape.core import ForwardAccumulator, VSpace
    >>> class Numbers(VSpace):
    ...     def aggregate_gradients(self, gradients): return sum(gradients)
    >>> accumulator = ForwardAccumulator(Numbers())
    >>> accumulator.watch(1, 10.0)
    >>> accumulator.accumulate("Square", [1], [2], [1], ["float64"],
    ...                        lambda tangents, use_batch: [2 * 3.0 * tangents[0]])
    True
    >>> accumulator.fetch_jvp(2)
    60.0
    """

    # Cython passes all arguments of a subclass to every __cinit__; __init__ checks the others.
    def __cinit__(self, VSpace vspace not None, bint use_batch=False, *rest, **others):
        self.vspace = vspace
        self.use_batch = use_batch
        self.free_tangent = NO_INDEX
        self.pushed = []
        idtable_init(&self.ids)

    def __init__(self, vspace, use_batch=False):
        pass

    def __del__(self):
        cdef index_t slot
        cdef void* gradient
        for slot in range(self.n_tangents):
            gradient = self.tangents[slot].gradient
            if gradient != NULL:
                self.tangents[slot].gradient = NULL
                self.vspace.release(gradient)

    def __dealloc__(self):
        release(self.tangents)
        idtable_free(&self.ids)

    # ---- methods for Python

    def watch(self, id_t id, tangent not None):
        """Track a tensor from now on, with a tangent; several for one tensor are summed.

        Parameters
        ----------
        id : int
            The tensor's id, at least 0.
        tangent : object
            A gradient, as the VSpace has them.

        Raises
        ------
        InvalidIdError
            If the id is negative.
        """
        cdef void* terms[2]
        cdef void* total
        check_id(id)
        terms[0] = total = <void*><PyObject*>tangent
        self.vspace.retain(terms[0])
        terms[1] = tangent_of(self, id)
        if terms[1] != NULL:
            try:
                self.vspace.retain(terms[1])  # not consumed if the sum fails
            except BaseException:
                self.vspace.release(terms[0])
                raise
            total = self.vspace.add(terms, 2)
            self.delete_gradient(id)
        self.store(id, total)

    def should_record(self, ids, dtypes) -> bool:
        """Return whether the tangents of an op with these inputs would be computed.

        While a backward function runs to be transposed, whether it would be recorded.

        Parameters
        ----------
        ids, dtypes
            As for `Tape.should_record`.

        Returns
        -------
        bool
            True if at least one input is both followed and trainable.
        """
        if len(ids) != len(dtypes):
            raise ValueError(f"every id needs a dtype: got {len(ids)} ids and {len(dtypes)} dtypes")
        if self.backward_tape is not None:
            return self.backward_tape.should_record(ids, dtypes)
        if self.accumulating:
            return False
        for id, dtype in zip(ids, dtypes):
            if tangent_of(self, id) != NULL and is_trainable(dtype):
                return True
        return False

    def accumulate(self, op_type not None, inputs, outputs, input_ids, input_dtypes,
                   forward_function=None, backward_getter=None, deleter=None) -> bool:
        """Compute the tangents of an op's outputs, if an input is tracked and trainable.

        While a backward function runs to be transposed, record the op instead.

        Parameters
        ----------
        op_type : OpType or str
        inputs, outputs : sequence
            One info each: an id, or an object with that id as attribute ``id``. Infos are handed to
            `VSpace.zeros_like` and `VSpace.ones_like`.
        input_ids : sequence of int
        input_dtypes : sequence
        forward_function : callable, optional
            Called with a list of input tangents (zeros for those without, None for those that are
            not trainable) and `use_batch`; returns one tangent or None per output.
        backward_getter : callable, optional
            Returns the backward object, which is transposed if there is no forward function.
        deleter : callable, optional
            Called with the backward object, exactly once, when it has served.

        Returns
        -------
        bool
            Whether tangents were computed. An output that has one already keeps it.

        Raises
        ------
        NotDifferentiableError
            If there is neither a forward function nor a backward object.
        TapeStateError
            If a function returned a wrong number of tangents or gradients.
        ValueError
            If `input_ids` and `input_dtypes` differ in length.
        """
        cdef VSpace vspace = self.vspace
        if self.backward_tape is not None:
            if backward_getter is None and self.should_record(input_ids, input_dtypes):
                raise NotDifferentiableError(f"op {op_type!r} has no backward function")
            return self.backward_tape.record(op_type, outputs, input_ids, input_dtypes,
                                             backward_getter, deleter)
        if not self.should_record(input_ids, input_dtypes):
            return False
        inputs, outputs = list(inputs), list(outputs)
        if len(inputs) != len(input_ids):
            raise ValueError(
                f"every input needs an id: got {len(inputs)} inputs and {len(input_ids)} ids")
        output_ids = [info if isinstance(info, int) else info.id for info in outputs]
        for id in output_ids:
            check_id(id)
        tangents, held = [], []
        cdef Py_ssize_t depth = len(self.pushed)
        self.push_state()
        self.accumulating = True
        try:
            for info, id, dtype in zip(inputs, input_ids, input_dtypes):
                tangent = self.fetch_jvp(id)
                if tangent is not None:
                    vspace.mark_as_result(tangent)  # it may be deleted while it is in use
                elif is_trainable(dtype):
                    tangent = vspace.zeros_like(info)
                if tangent is not None:
                    held.append(tangent)
                tangents.append(tangent)
            if forward_function is not None:
                results = list(forward_function(tangents, self.use_batch))
            elif backward_getter is not None:
                results = self.transposed(op_type, outputs, input_ids, input_dtypes, tangents,
                                          backward_getter, deleter)
            else:
                raise NotDifferentiableError(
                    f"op {op_type!r} has neither a forward function nor a backward function")
            if len(results) != len(outputs):
                for tangent in results:
                    if tangent is not None:
                        vspace.delete_gradient(tangent)
                raise TapeStateError(
                    f"the forward function of op {op_type!r} must return one tangent (or None) for "
                    f"each output: expected {len(outputs)}, received {len(results)}")
            for id, tangent in zip(output_ids, results):
                if tangent is not None:
                    Py_INCREF(tangent)
                    self.store(id, <void*>tangent)
        finally:
            del self.pushed[depth + 1:]
            self.pop_state()
            for tangent in held:
                vspace.delete_gradient(tangent)
        return True

    def fetch_jvp(self, id_t id):
        """Return the tangent of a tensor, None if it has none. Nothing is computed.

        Parameters
        ----------
        id : int

        Returns
        -------
        object
        """
        cdef void* gradient = tangent_of(self, id)
        return None if gradient == NULL else <object>gradient

    def delete_gradient(self, id_t id):
        """Drop the tangent of a tensor that died. Unknown ids are ignored.

        Parameters
        ----------
        id : int
        """
        cdef void* gradient = self.take(id)
        if gradient != NULL:
            self.vspace.release(gradient)

    def push_state(self):
        """Start as if no tangent were being computed, until `pop_state`."""
        self.pushed.append((self.accumulating, self.backward_tape))
        self.accumulating = False
        self.backward_tape = None

    def pop_state(self):
        """Restore the state that the last `push_state` saved.

        Raises
        ------
        TapeStateError
            If no `push_state` came before.
        """
        if not self.pushed:
            raise TapeStateError("pop_state was called without a push_state before it")
        self.accumulating, self.backward_tape = self.pushed.pop()

    @property
    def busy_accumulating(self) -> bool:
        """Whether a tangent is being computed; ops that run meanwhile are not tracked."""
        return self.accumulating

    # ---- methods in C

    cdef int store(self, id_t id, void* tangent) except -1:
        cdef index_t slot = self.free_tangent
        if tangent_of(self, id) != NULL:
            self.vspace.release(tangent)
            return 0
        try:
            if slot == NO_INDEX:
                slot = self.n_tangents
                if slot == self.tangent_capacity:
                    grow(<void**>&self.tangents, &self.tangent_capacity, slot + 1, sizeof(Tangent))
            idtable_add(&self.ids, id, slot)
        except BaseException:
            self.vspace.release(tangent)
            raise
        if slot == self.n_tangents:
            self.n_tangents += 1
        else:
            self.free_tangent = self.tangents[slot].next_free
        self.tangents[slot].gradient = tangent
        return 0

    cdef void* tangent_elsewhere(self, id_t id) noexcept:
        return NULL

    cdef void* take(self, id_t id) noexcept:
        cdef index_t slot = idtable_get(&self.ids, id) if id >= 0 else NO_INDEX
        cdef void* gradient
        if slot == NO_INDEX:
            return NULL
        gradient = self.tangents[slot].gradient
        idtable_remove(&self.ids, id)
        self.tangents[slot].gradient = NULL
        self.tangents[slot].next_free = self.free_tangent
        self.free_tangent = slot
        return gradient

    cdef list transposed(self, op_type, list outputs, input_ids, input_dtypes, list tangents,
                         backward_getter, deleter):
        """Return the tangents of the outputs of an op that is described in Python."""
        cdef Tape op_tape = Tape()
        cdef Py_ssize_t n_inputs = len(tangents), n_outputs = len(outputs), i
        cdef void** row
        if not outputs:
            return []
        for id, dtype in zip(input_ids, input_dtypes):
            if is_trainable(dtype):
                op_tape.watch(id)
        op_tape.record(op_type, outputs, input_ids, input_dtypes, backward_getter, deleter)
        row = <void**>calloc(n_inputs + 2 * n_outputs, sizeof(void*))
        if row == NULL:
            raise MemoryError()
        try:
            for i in range(n_inputs):
                row[i] = NULL if tangents[i] is None else <void*><PyObject*>tangents[i]
            memset(row + n_inputs + n_outputs, 1, n_outputs)  # all outputs may be trainable
            self.transpose(op_tape, row, <char*>(row + n_inputs + n_outputs), row + n_inputs)
            return [taken(row[n_inputs + i]) for i in range(n_outputs)]
        finally:
            free(row)

    cdef int transpose(self, Tape op_tape, void** tangents, const char* trainable,
                       void** results) except -1:
        cdef VSpace vspace = self.vspace
        cdef Op* op = &op_tape.table.ops[0]
        cdef BackwardCall call
        cdef Py_ssize_t n_inputs = op.n_inputs, n_outputs = op.n_outputs, n_seeds = 0, n = 0, i, j
        cdef Tape tape
        cdef id_t* targets
        cdef id_t* seeds         # of trainable outputs only, as are the tangents below
        cdef void** infos
        cdef void** weights
        cdef void** of_seeds
        cdef void* gradient
        cdef void** row = <void**>calloc(7 * n_inputs + 3 * n_outputs + 1, sizeof(void*))
        memset(results, 0, n_outputs * sizeof(void*))
        if row == NULL:
            raise MemoryError()
        call.kind = op.kind
        call.refs = op_tape.table.refs + op.refs
        call.n_refs = op.n_refs
        call.n_outputs, call.n_inputs = op.n_outputs, op.n_inputs
        call.output_gradients = row
        call.input_gradients = row + n_outputs
        call.arrived = call.input_gradients + n_inputs
        weights = call.arrived + n_inputs
        infos = weights + n_inputs
        of_seeds = infos + n_inputs
        targets = <id_t*>(of_seeds + n_outputs)
        seeds = targets + n_inputs
        call.needed = <char*>(seeds + n_outputs)
        try:
            for i in range(n_inputs):
                (<char*>call.needed)[i] = WANTED if tangents[i] != NULL else 0
            tape = self.begin_forwarding()
            try:
                for i in range(n_outputs):
                    if not trainable[i]:
                        if not takes_none(op.kind, i):
                            call.output_gradients[i] = vspace.zeros(call.refs[i])
                        continue
                    call.output_gradients[i] = vspace.ones(call.refs[i])
                    seeds[n_seeds] = vspace.id_of(call.output_gradients[i])
                    tape.watch_id(seeds[n_seeds])
                    n_seeds += 1
                vspace.backward(&call)
                for i in range(n_inputs):
                    gradient = call.input_gradients[i]
                    if gradient != NULL:
                        call.input_gradients[i] = NULL
                        call.input_gradients[i] = vspace.as_target(gradient)
            finally:
                self.end_forwarding(tape)
            for i in range(n_inputs):
                if call.input_gradients[i] == NULL or tangents[i] == NULL:
                    continue
                targets[n] = vspace.id_of(call.input_gradients[i])
                for j in range(n_seeds):
                    if seeds[j] == targets[n] and infos[n] == NULL:
                        infos[n] = vspace.info_of(call.input_gradients[i])
                vspace.retain(tangents[i])
                weights[n] = tangents[i]
                n += 1
            tape.gradient(vspace, targets, n, weights, infos, seeds, n_seeds, True, False, of_seeds)
            j = 0
            for i in range(n_outputs):
                if trainable[i]:
                    results[i] = of_seeds[j]
                    j += 1
        finally:
            for i in range(n_outputs + n_inputs):
                if row[i] != NULL:  # gradients of outputs and of inputs
                    vspace.release(row[i])
            for i in range(n_inputs):
                if weights[i] != NULL:
                    vspace.release(weights[i])
                if infos[i] != NULL:
                    Py_DECREF(<object>infos[i])
            free(row)
        return 0

    cdef Tape begin_forwarding(self):
        self.backward_tape = Tape()
        return self.backward_tape

    cdef int end_forwarding(self, Tape tape) except -1:
        self.backward_tape = None
        return 0
