# A host of cytape.core in C, as a library with tensors of its own would drive it: it looks up
# slots, appends ops and drops handles at C level. Its gradients are counts of paths, stored in the
# pointers themselves, so that only the work of the tape is timed.

from cytape.core.tape cimport Tape
from cytape.core.op_store cimport (
    INPUT_ONLY, Op, append_op, drop_handle, new_slot, next_op, slot_of)
from cytape.core.typedefs cimport NO_INDEX, id_t, index_t
from cytape.core.vspace cimport BackwardCall, OpType, VSpace
from libc.stdint cimport int32_t, int64_t, intptr_t

from bench.chains import FIRST_OUTPUT, SOURCE, WEIGHT, Refused

cdef id_t source_id = SOURCE
cdef id_t weight_id = WEIGHT
cdef id_t first_output = FIRST_OUTPUT


cdef class PathCounts(VSpace):
    cdef public bint refuses_to_seed

    cdef int64_t size(self, void* gradient) except -1:
        return 1

    cdef void* add(self, void** gradients, Py_ssize_t count) except NULL:
        cdef intptr_t total = 0
        cdef Py_ssize_t i
        for i in range(count):
            total += <intptr_t>gradients[i]
        return <void*>total

    cdef void* ones(self, void* info) except NULL:
        if self.refuses_to_seed:
            raise Refused
        return <void*>1

    cdef int backward(self, BackwardCall* call) except -1:
        cdef int32_t i
        for i in range(call.n_inputs):
            if call.needed[i]:
                call.input_gradients[i] = call.output_gradients[0]
        call.output_gradients[0] = NULL
        return 0

    cdef int retain(self, void* gradient) except -1:
        return 0

    cdef void release(self, void* gradient) noexcept:
        pass


cdef void release_nothing(void** refs, int32_t n_refs, object keeper) noexcept:
    pass


cdef OpType op_type = OpType("Multiply")
op_type.kind.release = release_nothing


cdef inline index_t slot_of_input(Tape tape, id_t id, bint* wanted) except -2:
    cdef index_t slot = slot_of(tape, id)
    if slot == NO_INDEX:
        return new_slot(tape, id, INPUT_ONLY)
    wanted[0] |= tape.slots[slot].op != INPUT_ONLY
    return slot


cdef inline int record_op(Tape tape, id_t x, id_t y, id_t output) except -1:
    cdef bint wanted = False
    cdef index_t slots[3]
    cdef Op* op
    cdef int i
    slots[0] = slot_of_input(tape, x, &wanted)
    slots[1] = slot_of_input(tape, y, &wanted)
    if wanted:
        slots[2] = new_slot(tape, output, INPUT_ONLY)
        op = next_op(tape, 3, 2)
        for i in range(3):
            tape.table.args[op.args + i] = slots[i]
        tape.table.refs[op.refs] = NULL  # where the info of the output would be
        tape.table.refs[op.refs + 1] = NULL  # ... and what backward would need
        append_op(tape, &op_type.kind, 2, 1)
    return 0


cdef inline int delete_trace(Tape tape, id_t id) except -1:
    if drop_handle(tape, id):
        tape.release_doomed()
    return 0


class CHost:
    """Drives the Cython core through its .pxd files; see `bench.chains.PythonHost`."""

    def new_tape(self, bint persistent=False):
        cdef Tape tape = Tape(persistent)
        tape.watch_id(source_id)
        tape.watch_id(weight_id)
        return tape

    def record(self, Tape tape, id_t n_ops):
        cdef id_t x = source_id, y
        for y in range(first_output, first_output + n_ops):
            record_op(tape, x, weight_id, y)
            x = y

    def delete(self, Tape tape, id_t n_ops):
        cdef id_t x
        for x in range(first_output, first_output + n_ops):
            delete_trace(tape, x)

    def record_and_delete(self, Tape tape, id_t n_ops):
        cdef id_t x = source_id, y
        for y in range(first_output, first_output + n_ops):
            record_op(tape, x, weight_id, y)
            delete_trace(tape, x)
            x = y
        delete_trace(tape, x)

    def gradient(self, Tape tape, id_t target, id_t source):
        return differentiate(tape, PathCounts(), target, source)

    def prepare(self, Tape tape, id_t target, id_t source):
        cdef PathCounts space = PathCounts()
        space.refuses_to_seed = True
        try:
            differentiate(tape, space, target, source)
        except Refused:
            pass


cdef differentiate(Tape tape, PathCounts space, id_t target, id_t source):
    cdef void* seed = NULL
    cdef void* info = NULL
    cdef void* result = NULL
    tape.gradient(space, &target, 1, &seed, &info, &source, 1, True, False, &result)
    return <intptr_t>result
