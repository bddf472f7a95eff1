# Entries of ops on tapes, in one layout. The refs of an entry are
#
#     specs of the outputs | per input its value if a rule reads it, else its spec |
#     values of the outputs that rules read, in order | tail
#
# Each kind of op defines its tail, for example its attributes. Refs never hold handles, which would
# keep the traces of their tensors alive.

from cpython.list cimport PyList_GET_SIZE
from cpython.ref cimport PyObject
from cytape.core.op_store cimport Op as StoredOp
from cytape.core.op_store cimport INPUT_ONLY, append_op, new_slot, next_op, slot_of
from cytape.core.typedefs cimport NO_ID, NO_INDEX, id_t, index_t
from cytape.tensor.recording.leaked_tensors cimport watch_leaks
from cytape.tensor.recording.state cimport Recorder, recording
from cytape.tensor.values.value cimport Value

from cytape.ops.calls.dispatch cimport Kept, Op, is_among, owned_pointer

cdef extern from "Python.h":
    ctypedef struct PyListObject:
        PyObject** ob_item
    PyObject* PyList_GET_ITEM(object list, Py_ssize_t i) noexcept  # borrowed


cdef inline PyObject** items_of(list items) noexcept:
    """The items, borrowed, while the list is not changed."""
    return (<PyListObject*>items).ob_item


cdef inline int fill_refs(void** refs, Kept kept, PyObject** inputs, int n_in, PyObject** outputs,
                          int n_out, PyObject** tail, int n_tail) noexcept:
    """Fill a row with new references; return their number."""
    cdef int i, n = 0
    for i in range(n_out):
        refs[i] = owned_pointer(<PyObject*>(<Value>outputs[i]).spec)
    for i in range(n_in):
        refs[n_out + i] = owned_pointer(inputs[i] if is_among(kept.inputs, i)
                                        else <PyObject*>(<Value>inputs[i]).spec)
    n = n_out + n_in
    for i in range(n_out if kept.outputs else 0):
        if is_among(kept.outputs, i):
            refs[n] = owned_pointer(outputs[i])
            n += 1
    for i in range(n_tail):
        refs[n] = owned_pointer(tail[i])
        n += 1
    return n


cdef inline id_t id_of_input(const id_t* ids, PyObject** inputs, int i) noexcept:
    if not (<Value>inputs[i]).spec.trainable:
        return NO_ID
    return (<Value>inputs[i]).id if ids == NULL else ids[i]


cdef inline bint enter(Recorder tape, Op op, PyObject** inputs, const id_t* ids, int n_in,
                       PyObject** outputs, int n_out, PyObject** tail, int n_tail,
                       bint are_new) except -1:
    """Add an entry to a tape if it tracks an input; return whether it does.

    ids: of the inputs, NULL for the ids of their values. are_new: the tape does not know the
    outputs.
    """
    # Pointers are cast in place, not assigned, to avoid reference counting.
    cdef StoredOp* entry = next_op(tape, n_in + n_out, 2 * n_out + n_in + n_tail)
    cdef index_t* row = tape.table.args + entry.args
    cdef Kept kept = op.kept
    cdef bint followed = False, unknown = False, taken_over = False
    cdef index_t slot
    cdef id_t id
    cdef int i
    if op.kept_for != NULL:
        kept.inputs = kept.outputs = 0
    if tape.began:
        watch_leaks(tape, inputs, ids, n_in)
    for i in range(n_in):
        id = id_of_input(ids, inputs, i)
        row[i] = slot = slot_of(tape, id)
        if slot == NO_INDEX:
            unknown |= id != NO_ID
        elif tape.slots[slot].op != INPUT_ONLY and is_among(op.moving, i):
            followed = True
            if op.kept_for != NULL:
                kept.inputs |= op.kept_for[i].inputs
                kept.outputs |= op.kept_for[i].outputs
    if not followed:
        return False
    for i in range(n_in if unknown else 0):
        id = id_of_input(ids, inputs, i)
        if row[i] == NO_INDEX and id != NO_ID:
            slot = slot_of(tape, id)  # it may also be an earlier input
            row[i] = new_slot(tape, id, INPUT_ONLY) if slot == NO_INDEX else slot
    for i in range(n_out):
        id = (<Value>outputs[i]).id
        slot = NO_INDEX if are_new else slot_of(tape, id)
        taken_over |= slot != NO_INDEX
        row[n_in + i] = new_slot(tape, id, INPUT_ONLY) if slot == NO_INDEX else slot
    entry.n_refs = fill_refs(
        tape.table.refs + entry.refs, kept, inputs, n_in, outputs, n_out, tail, n_tail)
    if taken_over:
        tape.append_again(&op.op_type.kind, n_in, n_out)
    else:
        append_op(tape, &op.op_type.kind, n_in, n_out)
    return True


cdef inline int record(Op op, PyObject** inputs, const id_t* ids, int n_in, PyObject** outputs,
                       int n_out, PyObject** tail, int n_tail, bint are_new) except -1:
    """Add an entry to each tape of this thread that follows an input; see `enter`."""
    cdef list tapes = recording()
    cdef Py_ssize_t i
    if tapes is not None:
        for i in range(PyList_GET_SIZE(tapes)):
            enter(<Recorder>PyList_GET_ITEM(tapes, i), op, inputs, ids, n_in, outputs, n_out, tail,
                  n_tail, are_new)
    return 0
