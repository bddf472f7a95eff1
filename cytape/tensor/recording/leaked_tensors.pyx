from cytape.core.idtable cimport IdTable
from cytape.core.op_store cimport HANDLE, INPUT_ONLY, WATCHED, Op, OpStore, new_slot, slot_of
from cytape.core.typedefs cimport NO_ID, NO_INDEX, index_t
from cytape.tensor.values.released_ids cimport Counts, counts
from cytape.tensor.values.value cimport Value, newest_id
from libc.stdlib cimport calloc, free

from .recorders cimport new_recorder
from .thread_stack cimport recording

from contextlib import nullcontext

from cytape.tensor.values.user_warnings import user_line

cdef object no_tape = nullcontext()
cdef Recorder leaked = new_recorder(False, False)  # its slots have the handles of leaks


cdef int begin_call(Recorder tape) except -1:
    if leaked.ids.count:
        leaked.hear_of_deaths()
        tape.began = newest_id() if leaked.ids.count else 0
    return 0


cdef set ids_with_handles(Recorder tape, id_t result):
    cdef set ids = None
    cdef index_t i
    for i in range(tape.n_slots):
        if tape.slots[i].uses & HANDLE and tape.slots[i].id not in (NO_ID, result):
            ids = set() if ids is None else ids  # most calls have no others
            ids.add(tape.slots[i].id)
    return ids


cdef set ids_with_tangents(TangentRecorder accumulator):
    cdef set ids = set()
    cdef IdTable* table = &accumulator.ids
    cdef id_t i
    for i in range(table.window_size):
        if table.window[i] != NO_INDEX:
            ids.add(table.base + i)
    for i in range(<id_t>table.mask + 1 if table.in_cells else 0):
        if table.cells[i].id != NO_ID:
            ids.add(table.cells[i].id)
    return ids


def watch_of_leaks():
    """Return a tape for a block, which follows leaks only; a context of None if there are none."""
    cdef Recorder tape
    if not leaked.ids.count:
        return no_tape
    tape = new_recorder(False, False)
    tape.follows_leaks_only = True
    begin_call(tape)
    return tape


cdef int note_leaks(set ids) except -1:
    cdef id_t id
    for id in ids:
        if slot_of(leaked, id) == NO_INDEX:
            leaked.hear_of_deaths()
            leaked.slots[new_slot(leaked, id, INPUT_ONLY)].uses = HANDLE
    return 0


cdef bint is_of_sweep(id_t id) noexcept:
    """Return whether a tensor is of a call being differentiated, whose rules may use it."""
    cdef Counts* recorders = counts()
    cdef OpStore store
    cdef int i
    for i in range(recorders.tapes.count):
        store = <OpStore>recorders.tapes.members[i]
        if store.sweeps and slot_of(store, id) != NO_INDEX:
            return True
    return False


cdef bint watch_leak(Recorder tape, id_t id) except -1:
    if not 0 <= id <= tape.began or slot_of(leaked, id) == NO_INDEX or is_of_sweep(id):
        return False
    if tape.leaks is None:
        tape.leaks = {}
    tape.leaks[id] = user_line()
    tape.watch_id(id)
    return True


cdef int watch_leaks(Recorder tape, PyObject** inputs, const id_t* ids, int n) except -1:
    cdef id_t id
    cdef int i
    for i in range(n):
        id = (<Value>inputs[i]).id if ids == NULL else ids[i]
        if (<Value>inputs[i]).spec.trainable and slot_of(tape, id) == NO_INDEX:
            watch_leak(tape, id)
    return 0


cdef int forget_leak(id_t id) except -1:
    cdef Recorder tape
    if leaked.ids.count and slot_of(leaked, id) != NO_INDEX:
        leaked.unlink(id)
        for tape in recording() or ():
            if tape.leaks is not None and id in tape.leaks:
                tape.leaks[id] = None
    return 0


cdef int origins(Recorder tape, list ids) except -1:
    cdef char* needed = <char*>calloc(tape.n_slots + 1, 1)
    cdef index_t* row
    cdef index_t slot, op, i
    cdef Op* entry
    cdef int found = 0
    cdef bint any_output
    if needed == NULL:
        raise MemoryError()
    for id in ids:
        slot = slot_of(tape, id)
        if slot != NO_INDEX:
            needed[slot] = True
    for op in range(tape.table.n_ops - 1, -1, -1):
        entry = &tape.table.ops[op]
        if entry.kind == NULL:
            continue
        row = tape.table.args + entry.args
        any_output = False
        for i in range(entry.n_inputs, entry.n_inputs + entry.n_outputs):
            any_output |= row[i] != NO_INDEX and needed[row[i]]
        for i in range(entry.n_inputs if any_output else 0):
            if row[i] != NO_INDEX:
                needed[row[i]] = True
    for slot in range(tape.n_slots):
        if needed[slot] and tape.slots[slot].op == WATCHED:
            if tape.leaks.get(tape.slots[slot].id, ""):
                found |= LEAKS
            elif tape.slots[slot].id not in tape.leaks:
                found |= SOURCES
    free(needed)
    return found
