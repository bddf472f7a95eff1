# OpStore: the recorded ops of a tape, as growable C arrays. No gradient is computed here.
#
# a. Every tensor id that is watched, or that a live op has as input or output, has a slot: its id,
#    the op that produced it, and its number of uses. The IdTable maps ids to slots.
# b. `ops` has the ops in the order of recording. An op's input and output slots are a row of
#    `args`; its refs (one info per output, then the host's saved values) are a row of `refs`.
# c. A use is an occurrence of the tensor among the inputs of a live op, or the handle of an output.
#    An op is dropped, with its outputs, when none of them has a use left. Dropped ops leave holes,
#    and so do the slots of dropped ids. Holes at the end are removed immediately, others by
#    compaction: when the arrays are full, and when more than half of them is holes and no gradient
#    is being computed. So the arrays are at most twice as large as their live entries, at constant
#    amortized cost per op.
# d. Releasing refs may run any Python code, which may use the same tape. So arrays are made
#    consistent first (`doomed` lists the ops) and refs are released afterwards. During releases and
#    sweeps nothing is moved: `pinned` counts the reasons.

from .idtable cimport IdTable, idtable_add, idtable_get
from .typedefs cimport NO_ID, NO_INDEX, id_t, index_t
from .vspace cimport OpKind
from libc.stdint cimport int32_t

cdef enum:
    WATCHED = -1   # Slot.op: watched, produced by no op on this tape
    INPUT_ONLY = -2  # an input, neither watched nor produced here
    CONSUMED = -3  # its op was dropped when a gradient consumed the tape

cdef enum:
    HANDLE = 1     # in Slot.uses: the use held by the handle of an output
    CONSUMER = 2   # ... and one occurrence among the inputs of a live op

cdef struct Slot:
    id_t id        # NO_ID: the slot is free
    index_t op     # producing op, or one of the above
    int32_t uses   # CONSUMER times the uses by live ops, plus HANDLE; in a free slot the next one

cdef struct Op:
    OpKind* kind   # NULL: freed, its refs are (being) released
    index_t args   # start of its row: n_inputs input slots, then n_outputs output slots
    index_t refs   # start of its row: n_outputs infos, then the host's
    int32_t n_inputs
    int32_t n_outputs
    int32_t n_refs
    int32_t live_outputs  # outputs that still have uses

cdef struct OpTable:
    Op* ops
    index_t* args     # slots; NO_INDEX: an input without an id, or one that was dropped
    void** refs
    index_t n_ops, op_capacity
    index_t n_args, arg_capacity
    index_t n_refs, ref_capacity

cdef class OpStore:
    cdef IdTable ids
    cdef Slot* slots
    cdef index_t n_slots, slot_capacity, free_slot
    cdef OpTable table
    cdef index_t n_live_ops
    cdef Py_ssize_t n_holes  # cells of the three arrays of `table` that freed or doomed ops hold
    cdef index_t* doomed   # ops whose refs wait for release
    cdef index_t n_doomed, doomed_capacity
    cdef int pinned
    cdef int sweeps        # gradients being computed; deletions of traces are postponed
    cdef int readers       # sweeps that read refs from `table`
    cdef id_t* postponed   # ids whose trace is deleted after the last sweep
    cdef index_t n_postponed, postponed_capacity
    cdef set keeper        # Backward objects, where the garbage collector sees them; or None

    cdef int watch_id(self, id_t id) except -1
    cdef int grow_slots(self) except -1
    cdef int record_op(self, OpKind* kind, const id_t* inputs, int32_t n_inputs,
                       const id_t* outputs, int32_t n_outputs, void* const* refs,
                       int32_t n_refs) except -1
    cdef int append_again(self, OpKind* kind, int32_t n_inputs, int32_t n_outputs) except -1
    cdef void revive(self, id_t id) noexcept nogil
    cdef bint unlink(self, id_t id) noexcept
    cdef void drop_use(self, index_t slot, int32_t kind) noexcept nogil
    cdef void free_slot_of(self, index_t slot) noexcept nogil
    cdef void doom(self, index_t op) noexcept nogil
    cdef void forget(self, index_t first_doomed) noexcept nogil
    cdef void release_doomed(self) noexcept
    cdef OpTable take_table(self) noexcept nogil
    cdef void end_sweep(self) noexcept
    cdef int reserve(self, index_t n_args, index_t n_refs) except -1
    cdef void close_holes(self) noexcept nogil
    cdef void close_free_slots(self) noexcept nogil
    cdef void compact(self) noexcept nogil
    cdef void give_back(self, OpTable* used, index_t n_slots) noexcept
    cdef void trim(self) noexcept nogil

cdef int check_id(id_t id) except -1


cdef inline index_t slot_of(OpStore store, id_t id) noexcept nogil:
    """Return the slot of an id, NO_INDEX for an id without one."""
    return idtable_get(&store.ids, id) if id >= 0 else NO_INDEX


cdef inline bint is_known(OpStore store, id_t id) noexcept nogil:
    """Return whether an id is watched or was produced here."""
    cdef index_t slot = slot_of(store, id)
    return slot != NO_INDEX and store.slots[slot].op != INPUT_ONLY


cdef inline bint drop_handle(OpStore store, id_t id) noexcept:
    """Release the use of a handle; True if ops wait for `release_doomed`. Runs no Python."""
    cdef index_t slot = slot_of(store, id)
    if slot == NO_INDEX:
        return False
    if (store.slots[slot].op >= 0 and store.slots[slot].uses > CONSUMER
            and store.slots[slot].uses & HANDLE and store.sweeps == 0):
        store.slots[slot].uses -= HANDLE
        return False
    return store.unlink(id)


# ---- recording, inline: the part of the tape that runs for every op

cdef inline index_t new_slot(OpStore store, id_t id, index_t op) except -1:
    """Give a new id a slot."""
    cdef index_t slot = store.free_slot if store.pinned == 0 else NO_INDEX
    if slot != NO_INDEX:
        idtable_add(&store.ids, id, slot)
        store.free_slot = store.slots[slot].uses
    else:
        slot = store.n_slots
        if slot == store.slot_capacity:
            store.grow_slots()
        idtable_add(&store.ids, id, slot)
        store.n_slots += 1
    store.slots[slot].id = id
    store.slots[slot].op = op
    store.slots[slot].uses = 0
    return slot


cdef inline void add_use(OpStore store, index_t slot, int32_t kind) noexcept nogil:
    cdef Slot* entry = &store.slots[slot]
    if entry.uses == 0 and entry.op >= 0:
        store.table.ops[entry.op].live_outputs += 1
    entry.uses += kind


cdef inline Op* next_op(OpStore store, int32_t n_args, int32_t n_refs) except NULL:
    """Return room for an op at the end, and for its rows; `append_op` adds it to the store."""
    cdef OpTable* table = &store.table
    cdef Op* op
    if (table.n_ops == table.op_capacity or table.n_args + n_args > table.arg_capacity
            or table.n_refs + n_refs > table.ref_capacity):
        store.reserve(n_args, n_refs)
    op = &table.ops[table.n_ops]
    op.args = table.n_args
    op.refs = table.n_refs
    op.n_refs = n_refs
    return op


cdef inline void append_op(OpStore store, OpKind* kind, int32_t n_inputs,
                           int32_t n_outputs) noexcept:
    """Append the next op, whose rows are filled: slots of inputs, new slots of outputs, refs.

    An input slot may be NO_INDEX: a tensor that has no id.
    """
    cdef OpTable* table = &store.table
    cdef index_t op = table.n_ops, i
    cdef Op* entry = &table.ops[op]
    cdef index_t* row = table.args + entry.args
    cdef Slot* slots = store.slots
    for i in range(n_inputs):
        if row[i] != NO_INDEX:
            add_use(store, row[i], CONSUMER)
    for i in range(n_inputs, n_inputs + n_outputs):
        slots[row[i]].uses |= HANDLE
        slots[row[i]].op = op
    entry.kind = kind
    entry.n_inputs = n_inputs
    entry.n_outputs = entry.live_outputs = n_outputs
    table.n_ops = op + 1
    table.n_args += n_inputs + n_outputs
    table.n_refs += entry.n_refs
    store.n_live_ops += 1
