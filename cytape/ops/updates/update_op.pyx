cimport cython
cimport numpy as cnp
from cpython.ref cimport Py_DECREF, PyObject
from cytape.core.op_store cimport WATCHED, slot_of
from cytape.core.typedefs cimport NO_ID, NO_INDEX
from cytape.core.vspace cimport BackwardCall
from cytape.ops.calls.dispatch cimport (
    Lowering, attrs_of, dense_value, input_ref, output_ref, owned, tensor_value, weak_scalar)
from cytape.ops.engine.index_op cimport find_bytes, find_region, selected
from cytape.ops.engine.tape_entry cimport record
from cytape.ops.calls.tangents cimport aligned, spec_of_tangent, tangent_value
from cytape.ops.kernels.move_geometry cimport copy_strided, is_contiguous
from cytape.ops.kernels.sums cimport sum_to, zeros
from cytape.ops.kernels.walk cimport MAX_AXES, broadcast_strides
from cytape.tensor.values.released_ids cimport handle_died, value_died
from cytape.tensor.values.spec cimport spec_of_dims
from cytape.tensor.recording.leaked_tensors cimport forget_leak
from cytape.tensor.recording.state cimport (
    Counts, Recorder, TangentRecorder, accumulating, building, counts, recording)
from cytape.tensor.values.value cimport (
    array_of, copy_of_array, is_exclusive, is_symbolic, new_id, new_value, value_of_array)
from cytape.tensor.noted_views cimport has_views, is_foreign, may_share
from libc.stdint cimport int64_t
from libc.string cimport memcpy, memset
from numpy cimport ndarray, npy_intp

import sys

from cytape.ops.engine.index_op import index_in_batch

cnp.import_array()

cdef Counts* recorders = counts()
cdef char[32] NOTHING  # an element of any dtype

memset(NOTHING, 0, sizeof(NOTHING))


@cython.final
cdef class UpdateOp(GeneralOp):
    def __init__(self, str name, forward, str kind, **rules):
        cdef bint sets = kind == "set"
        GeneralOp.__init__(self, name, forward, saved_inputs=range(1 + sets, sys.maxsize),
                           linear=True, **rules)
        self.kind = {"set": SET, "clear": CLEAR, "take": TAKE}[kind]
        self.moving = 0b11 if sets else 1
        self.lowering = Lowering.UPDATED

    cdef int assign(self, x, index, value) except -1:
        cdef int64_t start, stop
        if type(x) is Tensor:
            if has_views(x):
                find_bytes(index, (<Tensor>x).held.spec, &start, &stop)
                if may_share(x, start, stop):
                    self.general(x, index, value)
                    return 0
            if self.write(x, index, value):
                return 0
        self.general(x, index, value)
        return 0

    cdef bint write(self, Tensor tensor, index, value) except -1:
        """Write in place; return False, with no effect, if that is impossible or not simple."""
        cdef bint alone = is_exclusive(<PyObject*>tensor.held)
        cdef Value held = tensor.held, part
        cdef TangentRecorder accumulator
        cdef list following = None
        cdef Region region
        cdef Spec spec
        cdef id_t before
        cdef id_t[2] ids
        cdef PyObject* operands[2]
        cdef PyObject* tail
        cdef npy_intp[MAX_AXES] strides
        if not alone or held.handles != 1 or held.is_part or (
                is_foreign(tensor)) or not find_region(index, NULL, held.spec, &region):
            return False
        part = tensor_value(value)
        if part is None:
            part = weak_scalar(value, held.spec)
            if part is None:
                if type(value) is not ndarray:
                    return False
                part = value_of_array(value)
                part.id = NO_ID
        spec = spec_of_dims(region.ndim, region.dims, held.spec.dtype)
        if (is_symbolic(part) or part.spec.type_num != spec.type_num or part is held
                or not part.contiguous
                or not broadcast_strides(part.spec, NULL, spec.ndim, spec.dims, strides)):
            return False
        if recorders.symbolic and building() is not None:
            return False
        if recorders.entered:
            for recorder in recording() or ():
                if is_watched(recorder, held.id):
                    return False
            if recorders.accumulators.count:
                following = accumulating()
            for accumulator in following or ():
                if not accumulator.outermost or accumulator.by_transposition or (
                        accumulator.rule is not None or accumulator.reads is not None):
                    return False
        copy_strided(spec, part.data, strides, held.data + region.offset, region.strides)
        if recorders.entered:
            forget_leak(held.id)
        before, held.id = held.id, new_id()
        if recorders.entered and spec.trainable:
            attrs = {"index": index}
            operands[0], operands[1] = <PyObject*>held, <PyObject*>part
            ids[0], ids[1] = before, part.id
            tail = <PyObject*>attrs
            record(self, operands, ids, 2, operands, 1, &tail, 1, True)
            for accumulator in following or ():
                follow_write(accumulator, held, before, part, index)
        if recorders.tapes.count:
            note_change(before, held.id)
            handle_died(before)
        if recorders.accumulators.count:
            value_died(before)
        return True

    cdef bint backward_by_loops(self, BackwardCall* call) except -1:
        cdef bint spare = is_exclusive(<PyObject*>call.output_gradients[0])
        cdef Value g, rest, taken
        cdef Spec spec = <Spec>input_ref(call, 0), of_part, of_region
        cdef Region region
        if self.kind != SET:
            return False
        g, of_part = dense_value(<object>call.output_gradients[0]), <Spec>input_ref(call, 1)
        if (g.spec is not <Spec>output_ref(call, 0) or g.spec is not spec
                or of_part.type_num != spec.type_num
                or not find_region(attrs_of(call)["index"], NULL, spec, &region)):
            return False
        if not g.contiguous:
            g = copy_of_array(array_of(g))
            spare = True
        of_region = spec_of_dims(region.ndim, region.dims, spec.dtype)
        if call.needed[1]:
            taken = selected(g, of_region, &region)
            if of_region is not of_part:
                taken = sum_to(taken, of_part)
                if taken is None:
                    return False
            call.input_gradients[1] = owned(taken)
        if call.needed[0]:
            rest = g
            if not spare:
                rest = new_value(spec)
                memcpy(rest.data, g.data, spec.nbytes)
            clear(rest.data + region.offset, &region, of_region)
            call.input_gradients[0] = owned(rest)
        return True


cdef char* nothing() noexcept:
    return NOTHING


cdef bint is_watched(Recorder recorder, id_t id) except -1:
    """Return whether a tape watches a tensor, rather than tracking it as an op's output."""
    cdef Py_ssize_t slot = slot_of(recorder, id)
    if recorder.leaks is not None and id in recorder.leaks:  # which no gradient is asked for
        return False
    return slot != NO_INDEX and recorder.slots[slot].op == WATCHED or (
        recorder.watched_results is not None and id in recorder.watched_results)


cdef int note_change(id_t before, id_t after) except -1:
    """Let tapes, recording or not, know that a watched tensor has another value."""
    cdef Recorder recorder
    cdef int i
    for i in range(recorders.tapes.count):
        recorder = <Recorder>recorders.tapes.members[i]
        if recorder.changed is not None and before in recorder.changed:
            recorder.changed.remove(before)
        elif not is_watched(recorder, before):
            continue
        if recorder.changed is None:
            recorder.changed = set()
        recorder.changed.add(after)
    return 0


cdef int clear(char* memory, Region* region, Spec spec) except -1:
    cdef npy_intp[MAX_AXES] no_strides
    if is_contiguous(spec, region.strides):
        memset(memory, 0, spec.nbytes)
        return 0
    memset(no_strides, 0, sizeof(no_strides))
    return copy_strided(spec, NOTHING, no_strides, memory, region.strides)


cdef int follow_write(TangentRecorder accumulator, Value held, id_t before, Value part,
                      index) except -1:
    """Update the tangent in an outermost accumulator like its primal."""
    cdef Value moving = tangent_value(accumulator, part) if part.id != NO_ID else None
    cdef void* stored = accumulator.take(before)
    cdef Value tangent
    cdef bint alone = False
    if stored == NULL:
        if moving is None:
            return 0
        tangent = zeros(spec_of_tangent(held.spec, moving.spec.dims[0]) if accumulator.use_batch
                        else held.spec)
    else:
        alone = is_exclusive(<PyObject*>stored)
        found = <object>stored
        Py_DECREF(found)
        tangent = found if type(found) is Value else (<Tensor>found).held
        if not alone:
            tangent = copy_of_array(array_of(tangent))
    write_tangent(tangent, moving, index, accumulator.use_batch)
    return accumulator.store(held.id, owned(tangent))


cdef int write_tangent(Value tangent, Value moving, index, bint batched) except -1:
    cdef npy_intp[MAX_AXES] strides
    cdef Region region
    cdef Spec spec
    find_region(index_in_batch(index) if batched else index, NULL, tangent.spec, &region)
    spec = spec_of_dims(region.ndim, region.dims, tangent.spec.dtype)
    if moving is None:
        clear(tangent.data + region.offset, &region, spec)
        return 0
    if batched:
        moving = aligned(moving, spec.ndim - 1)
    if not moving.contiguous:
        moving = copy_of_array(array_of(moving))
    broadcast_strides(moving.spec, NULL, spec.ndim, spec.dims, strides)
    copy_strided(spec, moving.data, strides, tangent.data + region.offset, region.strides)
    return 0
