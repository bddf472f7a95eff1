from .backprop cimport backpropagate
from .idtable cimport idtable_nbytes
from .op_store cimport CONSUMER, INPUT_ONLY, Op, Slot, check_id, is_known
from .typedefs cimport NO_ID, NO_INDEX, index_t
from .vspace cimport Backward, OpType
from cpython.ref cimport Py_DECREF, PyObject
from libc.stdlib cimport calloc, free, malloc

from cytape.core.vspace import is_trainable
from cytape.errors import InvalidGradientError, InvalidIdError

IDENTITY = "Identity"  # op type of entries without a backward function, as reads of variables
cdef dict op_types_by_name = {}


cdef OpType as_op_type(op_type):
    """The OpType itself, or the one OpType of a plain name (without optional gradients)."""
    if isinstance(op_type, OpType):
        return op_type
    found = op_types_by_name.get(op_type)
    if found is None:
        found = op_types_by_name[op_type] = OpType(op_type)
    return found


cdef class Tape(OpStore):
    """A language-agnostic gradient tape: ids in, gradients out.

    Parameters
    ----------
    persistent : bool, optional
        Whether more than one gradient can be computed. A tape that is not persistent releases each
        backward object as soon as it has been called (or is seen not to be needed).

    See Also
    --------
    VSpace : operations on gradients that the tape calls.

    Notes
    -----
    Not thread-safe: one thread at a time may use a tape (the GIL sees to it).

    Examples
    --------
    Ids are chosen by the caller; `VSpace` shows how to differentiate the recorded ops.

    >>> from cytape.core import Tape
    >>> tape = Tape()
    >>> tape.watch(1)
    >>> tape.record("Square", [2], [1], ["float64"], lambda: "what backward needs")
    True
    >>> tape.num_ops, tape.is_known(2)
    (1, True)
    >>> tape.delete_trace(2)
    >>> tape.num_ops, tape.is_known(2)
    (0, False)
    """

    def __init__(self, bint persistent=False):
        self.persistent = persistent

    def watch(self, id_t id):
        """Track a tensor from now on.

        Watching twice, or watching an output of an op on this tape, changes nothing.

        Parameters
        ----------
        id : int
            The tensor's id, at least 0.

        Raises
        ------
        InvalidIdError
            If the id is negative.
        """
        check_id(id)
        self.watch_id(id)

    def should_record(self, ids, dtypes) -> bool:
        """Return whether an op with these inputs would be recorded.

        Parameters
        ----------
        ids : sequence of int
            Ids of the inputs.
        dtypes : sequence
            Their dtypes, as `is_trainable` takes them.

        Returns
        -------
        bool
            True if at least one input is both known to the tape and trainable.

        Raises
        ------
        ValueError
            If the sequences differ in length.
        """
        if len(ids) != len(dtypes):
            raise ValueError(f"every id needs a dtype: got {len(ids)} ids and {len(dtypes)} dtypes")
        for id, dtype in zip(ids, dtypes):
            if is_known(self, id) and is_trainable(dtype):
                return True
        return False

    def record(self, op_type not None, outputs, input_ids, input_dtypes, backward_getter,
               deleter=None) -> bool:
        """Record one op, if any of its inputs is on the tape and trainable.

        Parameters
        ----------
        op_type : OpType or str
            A plain name stands for an OpType without optional gradients.
        outputs : sequence
            One info per output: its id, or an object with that id as attribute ``id``. Infos are
            handed to `VSpace.ones_like` and `VSpace.zeros_like`.
        input_ids : sequence of int
        input_dtypes : sequence
        backward_getter : callable
            Called without arguments, and only if the op is recorded; returns the backward object.
        deleter : callable, optional
            Called with the backward object, exactly once, when the tape lets go of it.

        Returns
        -------
        bool
            Whether the op was recorded.

        Raises
        ------
        InvalidIdError
            If an id is negative, an output is listed twice, or an output is its own input.
        ValueError
            If `input_ids` and `input_dtypes` differ in length.
        """
        if not self.should_record(input_ids, input_dtypes):
            return False
        cdef OpType kind = as_op_type(op_type)
        cdef list infos = list(outputs)
        cdef list output_ids = infos.copy()
        cdef Py_ssize_t n_inputs = len(input_ids), n_outputs = len(infos), i
        # No list comprehension: Cython 3.3's releases an item twice where the list cannot grow.
        for i in range(n_outputs):
            if not isinstance(infos[i], int):
                output_ids[i] = infos[i].id
        for id in input_ids:
            check_id(id)
        for id in output_ids:
            check_id(id)
            if id in input_ids or output_ids.count(id) > 1:
                raise InvalidIdError(f"output {id} of op {kind.name!r} is listed twice or is its "
                                     "own input; give every output an id of its own")
        cdef Backward backward = Backward()
        backward.op_type = kind
        backward.infos = infos
        backward.function = backward_getter()
        backward.deleter = deleter
        cdef void** refs = <void**>malloc((n_inputs + 2 * n_outputs + 1) * sizeof(void*))
        if refs == NULL:
            raise MemoryError()
        cdef id_t* ids = <id_t*>&refs[n_outputs + 1]
        try:
            if self.keeper is None:
                self.keeper = set()
            for i in range(n_inputs):
                ids[i] = input_ids[i]
            for i in range(n_outputs):
                ids[n_inputs + i] = output_ids[i]
                refs[i] = <void*><PyObject*>infos[i]
            refs[n_outputs] = <void*>backward
            self.keeper.add(backward)
            self.record_op(&kind.kind, ids, n_inputs, ids + n_inputs, n_outputs, refs,
                           n_outputs + 1)
        except BaseException:
            if self.keeper is not None:
                self.keeper.discard(backward)
            raise
        finally:
            free(refs)
        return True

    def delete_trace(self, id_t id):
        """Delete the trace of a tensor whose handle is gone.

        Ops whose outputs have no uses left are released, recursively upstream, producers first.
        While a gradient is being computed the release is postponed. Unknown ids are ignored.

        Parameters
        ----------
        id : int
        """
        if self.unlink(id):
            self.release_doomed()

    def is_known(self, id_t id) -> bool:
        """Return whether the id is watched or was produced by an op on this tape."""
        return is_known(self, id)

    def usages(self) -> dict:
        """Return the number of uses of every input and output of a live op."""
        cdef index_t op, i, slot
        cdef Op* entry
        uses = {}
        for op in range(self.table.n_ops):
            entry = &self.table.ops[op]
            if entry.kind != NULL:
                for i in range(entry.args, entry.args + entry.n_inputs + entry.n_outputs):
                    slot = self.table.args[i]
                    if slot != NO_INDEX:
                        uses[self.slots[slot].id] = (self.slots[slot].uses // CONSUMER
                                                     + self.slots[slot].uses % CONSUMER)
        return uses

    def recorded_ops(self) -> list:
        """List the ops on the tape in the order of recording.

        Returns
        -------
        list of (str, list of int, list of int)
            The name of an op, the ids of its inputs and of its outputs. An id is None for a
            constant, and for an output that another op has recorded since.

        Examples
        --------
        >>> from cytape.core import Tape
        >>> tape = Tape()
        >>> tape.watch(1)
        >>> tape.record("Multiply", [3], [1, 2], ["float64"] * 2, lambda: None)
        True
        >>> tape.recorded_ops()
        [('Multiply', [1, 2], [3])]
        """
        cdef index_t op
        cdef Op* entry
        found = []
        for op in range(self.table.n_ops):
            entry = &self.table.ops[op]
            if entry.kind != NULL:
                found.append((
                    IDENTITY if entry.kind.owner == NULL else (<object>entry.kind.owner).name,
                    ids_at(self, entry.args, entry.n_inputs),
                    ids_at(self, entry.args + entry.n_inputs, entry.n_outputs)))
        return found

    @property
    def num_ops(self) -> int:
        """Number of ops on the tape."""
        return self.n_live_ops

    @property
    def num_known(self) -> int:
        """Number of ids that are watched or were produced on this tape."""
        cdef index_t slot
        known = 0
        for slot in range(self.n_slots):
            known += self.slots[slot].id != NO_ID and self.slots[slot].op != INPUT_ONLY
        return known

    @property
    def nbytes(self) -> int:
        """Return the bytes allocated for the tape's own arrays, saved values of ops excluded."""
        return (idtable_nbytes(&self.ids)
                + self.slot_capacity * sizeof(Slot)
                + self.table.op_capacity * sizeof(Op)
                + self.doomed_capacity * sizeof(index_t)
                + self.table.arg_capacity * sizeof(index_t)
                + self.table.ref_capacity * sizeof(void*)
                + self.postponed_capacity * sizeof(id_t))

    cdef int gradient(self, VSpace vspace, const id_t* targets, Py_ssize_t n_targets, void** seeds,
                      void** infos, const id_t* sources, Py_ssize_t n_sources, bint build_zeros,
                      bint keep, void** results) except -1:
        """See `backpropagate`; with ``keep`` a tape that is not persistent is not consumed."""
        return backpropagate(self, vspace, targets, n_targets, seeds, infos, sources, n_sources,
                             build_zeros, not (self.persistent or keep), results)

    def compute_gradient(self, VSpace vspace not None, targets, sources,
                         sources_that_are_targets=None, output_gradients=None,
                         bint build_default_zeros_grads=True, bint keep=False) -> list:
        """Differentiate the sum of the targets with respect to each source.

        Parameters
        ----------
        vspace : VSpace
        targets, sources : sequence of int
            Ids. A target that no op on the tape produced contributes nothing.
        sources_that_are_targets : dict, optional
            Maps the id of a source that is a target too to its info, so that it can be seeded.
        output_gradients : sequence, optional
            One gradient per target; None (also as an entry) stands for ones.
        build_default_zeros_grads : bool, optional
            Whether an output without gradient is passed to the backward function as zeros (unless
            its OpType says that it may be None) or always as None.
        keep : bool, optional
            Whether to spare a tape that is not persistent: nothing is released, and this call does
            not count as its only one.

        Returns
        -------
        list
            Per source its gradient, or None if no path leads to it or the tape does not know it.

        Raises
        ------
        InvalidGradientError
            If `output_gradients` differs in length from `targets`.
        InvalidIdError
            If an id is negative.
        TapeStateError
            If the op that produced a target went with an earlier gradient computation, or a
            backward function returned a wrong number of gradients.

        Examples
        --------
        The derivatives of ``x * y`` and ``y * y`` at ``x = 2``, ``y = 3``; these have ids 0 and 1:

        >>> from cytape.core import Tape, VSpace
        >>> class Numbers(VSpace):
        ...     def num_elements(self, gradient): return 1
        ...     def aggregate_gradients(self, gradients): return sum(gradients)
        ...     def ones_like(self, info): return 1.0
        ...     def zeros_like(self, info): return 0.0
        ...     def call_backward_function(self, op_type, backward, unneeded, output_gradients):
        ...         return backward(*output_gradients)
        >>> tape = Tape(persistent=True)
        >>> tape.watch(0)
        >>> tape.watch(1)
        >>> floats = ["float64", "float64"]
        >>> tape.record("Multiply", [2], [0, 1], floats, lambda: lambda g: [g * 3.0, g * 2.0])
        True
        >>> tape.record("Multiply", [3], [1, 1], floats, lambda: lambda g: [g * 3.0, g * 3.0])
        True
        >>> tape.compute_gradient(Numbers(), [2], [0, 1])
        [3.0, 2.0]
        >>> tape.compute_gradient(Numbers(), [2, 3], [0, 1])
        [3.0, 8.0]
        >>> tape.compute_gradient(Numbers(), [3], [0, 1], output_gradients=[10.0])
        [None, 60.0]
        """
        cdef Py_ssize_t n_targets = len(targets), n_sources = len(sources), i
        cdef void** buffer
        cdef void** infos
        cdef void** results
        cdef id_t* ids
        if output_gradients is not None and len(output_gradients) != n_targets:
            raise InvalidGradientError(
                f"output_gradients must have one entry (or None) per target: expected {n_targets}, "
                f"got {len(output_gradients)}")
        buffer = <void**>calloc(3 * n_targets + 2 * n_sources + 1, sizeof(void*))
        if buffer == NULL:
            raise MemoryError()
        infos = buffer + n_targets
        results = infos + n_targets
        ids = <id_t*>(results + n_sources)
        try:
            for i in range(n_targets):
                check_id(targets[i])
                ids[i] = targets[i]
                if sources_that_are_targets is not None and targets[i] in sources_that_are_targets:
                    infos[i] = <void*><PyObject*>sources_that_are_targets[targets[i]]
            for i in range(n_sources):
                check_id(sources[i])
                ids[n_targets + i] = sources[i]
            for i in range(n_targets if output_gradients is not None else 0):
                if output_gradients[i] is not None:
                    gradient = output_gradients[i]
                    vspace.retain(<void*><PyObject*>gradient)
                    buffer[i] = <void*><PyObject*>gradient
            self.gradient(vspace, ids, n_targets, buffer, infos, ids + n_targets, n_sources,
                          build_default_zeros_grads, keep, results)
            return [taken(results[i]) for i in range(n_sources)]
        finally:
            for i in range(n_targets):
                if buffer[i] != NULL:
                    vspace.release(buffer[i])  # a seed that the gradient did not take
            free(buffer)


cdef list ids_at(Tape tape, index_t start, index_t n):
    """List the ids of some arguments of an op; None for those that have no slot."""
    cdef index_t i
    return [None if tape.table.args[i] == NO_INDEX else tape.slots[tape.table.args[i]].id
            for i in range(start, start + n)]


cdef object taken(void* gradient):
    """Return a gradient as an object; its reference goes to the caller."""
    if gradient == NULL:
        return None
    result = <object>gradient
    Py_DECREF(result)
    return result
