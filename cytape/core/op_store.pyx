from .idtable cimport (
    idtable_free, idtable_get, idtable_init, idtable_move, idtable_remove, idtable_shrink)
from .memory cimport grow, has_grown, release, shrink
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memmove, memset

from cytape.errors import InvalidIdError

cdef enum:
    REFS_ON_STACK = 32
    FEW = 256  # compaction ignores fewer holes


cdef class OpStore:
    def __cinit__(self):
        self.free_slot = NO_INDEX
        idtable_init(&self.ids)

    def __dealloc__(self):
        cdef index_t op
        cdef OpKind* kind
        self.pinned += 1
        for op in range(self.table.n_ops):
            kind = self.table.ops[op].kind
            if kind != NULL:
                self.table.ops[op].kind = NULL
                kind.release(self.table.refs + self.table.ops[op].refs, self.table.ops[op].n_refs,
                             self.keeper)
        idtable_free(&self.ids)
        release(self.slots)
        release(self.table.ops)
        release(self.doomed)
        release(self.table.args)
        release(self.table.refs)
        release(self.postponed)

    # ---- recording

    cdef int watch_id(self, id_t id) except -1:
        cdef index_t slot = idtable_get(&self.ids, id)
        if slot == NO_INDEX:
            new_slot(self, id, WATCHED)
        elif self.slots[slot].op == INPUT_ONLY:
            self.slots[slot].op = WATCHED
        return 0

    cdef int grow_slots(self) except -1:
        return grow(<void**>&self.slots, &self.slot_capacity, self.n_slots + 1, sizeof(Slot))

    cdef int record_op(self, OpKind* kind, const id_t* inputs, int32_t n_inputs,
                       const id_t* outputs, int32_t n_outputs, void* const* refs,
                       int32_t n_refs) except -1:
        """Append an op and take over its refs; after an error the caller still owns them.

        NO_ID stands for an input without an id. If another op produced an output before, this op
        replaces it as the producer.
        """
        cdef Op* entry = next_op(self, n_inputs + n_outputs, n_refs)
        cdef index_t* row = self.table.args + entry.args
        cdef index_t slot, i
        cdef id_t id
        for i in range(n_inputs + n_outputs):
            id = inputs[i] if i < n_inputs else outputs[i - n_inputs]
            slot = slot_of(self, id)
            row[i] = new_slot(self, id, INPUT_ONLY) if slot == NO_INDEX and id >= 0 else slot
        memcpy(self.table.refs + entry.refs, refs, n_refs * sizeof(void*))
        return self.append_again(kind, n_inputs, n_outputs)

    cdef int append_again(self, OpKind* kind, int32_t n_inputs, int32_t n_outputs) except -1:
        """Append the next op as `append_op`; it becomes the producer of all its outputs."""
        cdef index_t* row = self.table.args + self.table.n_args
        cdef index_t i, first_doomed = self.n_doomed
        for i in range(n_inputs):
            if row[i] != NO_INDEX:
                # Replacing the producer of an output must not doom the producer of this input.
                add_use(self, row[i], CONSUMER)
        for i in range(n_inputs, n_inputs + n_outputs):
            if self.slots[row[i]].op >= 0:
                lose_output(self, self.slots[row[i]].op, row[i])
        append_op(self, kind, n_inputs, n_outputs)
        for i in range(n_inputs):
            if row[i] != NO_INDEX:
                self.slots[row[i]].uses -= CONSUMER  # append counted it as well
        if self.n_doomed > first_doomed:
            self.forget(first_doomed)
            self.release_doomed()
        return 0

    cdef int reserve(self, index_t n_args, index_t n_refs) except -1:
        """Make room for one more op, by compaction if there are many holes, else by growing."""
        if self.pinned == 0 and self.n_doomed == 0 and 2 * self.n_holes > cells_of(&self.table):
            self.close_holes()
        if self.table.n_ops == self.table.op_capacity:
            grow(<void**>&self.table.ops, &self.table.op_capacity, self.table.n_ops + 1, sizeof(Op))
        if self.doomed_capacity < self.table.op_capacity:
            grow(<void**>&self.doomed, &self.doomed_capacity, self.table.op_capacity,
                 sizeof(index_t))
        if self.table.n_args + n_args > self.table.arg_capacity:
            grow(<void**>&self.table.args, &self.table.arg_capacity,
                 <Py_ssize_t>self.table.n_args + n_args, sizeof(index_t))
        if self.table.n_refs + n_refs > self.table.ref_capacity:
            grow(<void**>&self.table.refs, &self.table.ref_capacity,
                 <Py_ssize_t>self.table.n_refs + n_refs, sizeof(void*))
        return 0

    # ---- forgetting

    cdef void revive(self, id_t id) noexcept nogil:
        """Add the use held by a new handle of a saved value."""
        cdef index_t slot = slot_of(self, id)
        if (slot != NO_INDEX and not self.slots[slot].uses & HANDLE
                and self.slots[slot].op != INPUT_ONLY and self.slots[slot].op != WATCHED):
            add_use(self, slot, HANDLE)

    cdef bint unlink(self, id_t id) noexcept:
        """Release the use held by a handle; True if ops now wait for `release_doomed`.

        Runs no Python.
        """
        cdef index_t slot = slot_of(self, id)
        cdef index_t first_doomed = self.n_doomed
        if slot == NO_INDEX or not self.slots[slot].uses & HANDLE:
            return False
        if self.sweeps:
            postpone(self, id)
            return False
        self.drop_use(slot, HANDLE)
        self.forget(first_doomed)
        return self.n_doomed > 0

    cdef void drop_use(self, index_t slot, int32_t kind) noexcept nogil:
        cdef Slot* entry = &self.slots[slot]
        cdef Op* op
        entry.uses -= kind
        if entry.uses > 0 or entry.op == WATCHED:
            return
        if entry.op < 0:
            self.free_slot_of(slot)
            return
        # An output without uses stays known while its op lives: it may be a saved value.
        op = &self.table.ops[entry.op]
        op.live_outputs -= 1
        if op.live_outputs == 0:
            self.doom(entry.op)

    cdef void free_slot_of(self, index_t slot) noexcept nogil:
        idtable_remove(&self.ids, self.slots[slot].id)
        self.slots[slot].id = NO_ID
        self.slots[slot].op = INPUT_ONLY
        self.slots[slot].uses = self.free_slot
        self.free_slot = slot

    cdef void doom(self, index_t op) noexcept nogil:
        cdef Op* entry = &self.table.ops[op]
        cdef index_t i
        for i in range(entry.args + entry.n_inputs, entry.args + entry.n_inputs + entry.n_outputs):
            if self.table.args[i] != NO_INDEX:
                self.free_slot_of(self.table.args[i])
                self.table.args[i] = NO_INDEX
        self.doomed[self.n_doomed] = op
        self.n_doomed += 1
        self.n_live_ops -= 1
        self.n_holes += cells_of_op(entry)

    cdef void forget(self, index_t first_doomed) noexcept nogil:
        """Release the uses that doomed ops hold of their inputs, recursively upstream."""
        cdef index_t slot, i
        cdef Op* entry
        while first_doomed < self.n_doomed:
            entry = &self.table.ops[self.doomed[first_doomed]]
            for i in range(entry.args, entry.args + entry.n_inputs):
                slot = self.table.args[i]
                if slot != NO_INDEX:
                    self.table.args[i] = NO_INDEX
                    self.drop_use(slot, CONSUMER)
            first_doomed += 1

    cdef void release_doomed(self) noexcept:
        if self.pinned:
            return  # the caller that pinned the arrays releases these as well
        self.pinned += 1
        while self.n_doomed:  # last first: an op is doomed after its consumers
            self.n_doomed -= 1
            release_refs(self, self.doomed[self.n_doomed])
        self.pinned -= 1
        self.trim()
        self.compact()

    cdef OpTable take_table(self) noexcept nogil:
        """Move all ops, with their refs, to the caller. Their outputs stay known."""
        cdef OpTable table = self.table
        cdef index_t slot
        memset(&self.table, 0, sizeof(OpTable))
        self.n_live_ops = self.n_doomed = 0
        self.n_holes = 0
        for slot in range(self.n_slots):
            if self.slots[slot].op >= 0:
                self.slots[slot].op = CONSUMED
        return table

    cdef void end_sweep(self) noexcept:
        cdef id_t* ids
        cdef index_t i, n, n_slots = self.n_slots
        cdef OpTable used = self.table
        self.sweeps -= 1
        if self.n_doomed:
            self.release_doomed()
        if self.sweeps == 0 and self.n_postponed:
            ids, n = self.postponed, self.n_postponed
            self.postponed, self.n_postponed, self.postponed_capacity = NULL, 0, 0
            for i in range(n):
                if self.unlink(ids[i]):
                    self.release_doomed()
            release(ids)
        self.compact()
        self.give_back(&used, n_slots)

    cdef void trim(self) noexcept nogil:
        """Remove freed ops at the end."""
        while self.table.n_ops and self.table.ops[self.table.n_ops - 1].kind == NULL:
            self.table.n_ops -= 1
            self.n_holes -= cells_of_op(&self.table.ops[self.table.n_ops])
            self.table.n_args = self.table.ops[self.table.n_ops].args
            self.table.n_refs = self.table.ops[self.table.n_ops].refs

    cdef void close_holes(self) noexcept nogil:
        """Move the live ops down over the freed ones."""
        cdef index_t source, op = 0, n_args = 0, n_refs = 0, i
        cdef Op* entry
        for source in range(self.table.n_ops):
            entry = &self.table.ops[source]
            if entry.kind == NULL:
                continue
            self.table.ops[op] = entry[0]
            entry = &self.table.ops[op]
            memmove(self.table.args + n_args, self.table.args + entry.args,
                    (entry.n_inputs + entry.n_outputs) * sizeof(index_t))
            memmove(self.table.refs + n_refs, self.table.refs + entry.refs,
                    entry.n_refs * sizeof(void*))
            entry.args = n_args
            entry.refs = n_refs
            n_refs += entry.n_refs
            n_args += entry.n_inputs + entry.n_outputs
            for i in range(n_args - entry.n_outputs, n_args):
                if self.table.args[i] != NO_INDEX:
                    self.slots[self.table.args[i]].op = op
            op += 1
        self.table.n_ops, self.table.n_args, self.table.n_refs = op, n_args, n_refs
        self.n_holes = 0

    cdef void close_free_slots(self) noexcept nogil:
        """Move the slots at the end into free ones; ids and live ops follow."""
        cdef Slot* slots = self.slots
        cdef index_t n = <index_t>self.ids.count, hole = 0, slot, op, i
        cdef Op* entry
        for slot in range(n, self.n_slots):
            if slots[slot].id == NO_ID:
                continue
            while slots[hole].id != NO_ID:
                hole += 1
            slots[hole] = slots[slot]
            idtable_move(&self.ids, slots[slot].id, hole)
            slots[slot].uses = hole  # its new slot
        for op in range(self.table.n_ops):
            entry = &self.table.ops[op]
            if entry.kind == NULL:
                continue
            for i in range(entry.args, entry.args + entry.n_inputs + entry.n_outputs):
                if self.table.args[i] >= n:
                    self.table.args[i] = slots[self.table.args[i]].uses
        self.n_slots = n
        self.free_slot = NO_INDEX

    cdef void compact(self) noexcept nogil:
        """Compact if more than half is holes and no caller holds positions in the arrays."""
        if self.pinned or self.n_doomed:
            return
        if 2 * self.n_holes > cells_of(&self.table) + FEW:
            self.close_holes()
        if 2 * <Py_ssize_t>self.ids.count + FEW < self.n_slots:
            self.close_free_slots()

    cdef void give_back(self, OpTable* used, index_t n_slots) noexcept:
        """Shrink arrays that are far larger than the gradient that just ended needed."""
        cdef OpTable* table = &self.table
        if self.pinned or self.n_doomed:
            return
        shrink(<void**>&table.ops, &table.op_capacity, max(used.n_ops, table.n_ops), sizeof(Op))
        shrink(<void**>&table.args, &table.arg_capacity, max(used.n_args, table.n_args),
               sizeof(index_t))
        shrink(<void**>&table.refs, &table.ref_capacity, max(used.n_refs, table.n_refs),
               sizeof(void*))
        shrink(<void**>&self.doomed, &self.doomed_capacity, table.op_capacity, sizeof(index_t))
        shrink(<void**>&self.slots, &self.slot_capacity, max(n_slots, self.n_slots), sizeof(Slot))
        idtable_shrink(&self.ids)


cdef inline Py_ssize_t cells_of(OpTable* table) noexcept nogil:
    return <Py_ssize_t>table.n_ops + table.n_args + table.n_refs


cdef inline Py_ssize_t cells_of_op(Op* op) noexcept nogil:
    return 1 + <Py_ssize_t>op.n_inputs + op.n_outputs + op.n_refs


cdef int check_id(id_t id) except -1:
    if id < 0:
        raise InvalidIdError(f"tensor ids are at least 0, got {id}")
    return 0


cdef void lose_output(OpStore store, index_t op, index_t slot) noexcept nogil:
    """Remove an output from its op's row, as another op made it again; may drop the op."""
    cdef Op* entry = &store.table.ops[op]
    cdef index_t i = entry.args + entry.n_inputs
    while store.table.args[i] != slot:
        i += 1
    store.table.args[i] = NO_INDEX
    store.slots[slot].op = INPUT_ONLY
    if store.slots[slot].uses:
        entry.live_outputs -= 1
        if entry.live_outputs == 0:
            store.doom(op)


cdef void release_refs(OpStore store, index_t op) noexcept:
    cdef void* on_stack[REFS_ON_STACK]
    cdef void** refs = on_stack
    cdef Op* entry = &store.table.ops[op]
    cdef OpKind* kind = entry.kind
    cdef int32_t n_refs = entry.n_refs
    if kind == NULL:
        return
    entry.kind = NULL
    if n_refs > REFS_ON_STACK:
        refs = <void**>malloc(n_refs * sizeof(void*))
        if refs == NULL:
            return  # out of memory: these are leaked
    # A copy, since releases may move the array.
    memcpy(refs, store.table.refs + entry.refs, n_refs * sizeof(void*))
    kind.release(refs, n_refs, store.keeper)
    if refs != on_stack:
        free(refs)


cdef void postpone(OpStore store, id_t id) noexcept:
    if store.n_postponed == store.postponed_capacity and not has_grown(
            <void**>&store.postponed, &store.postponed_capacity, store.n_postponed + 1,
            sizeof(id_t)):
        return  # the trace lives as long as the tape
    store.postponed[store.n_postponed] = id
    store.n_postponed += 1
