from cpython.ref cimport Py_DECREF, Py_INCREF, PyObject
from cytape.core.accumulator cimport tangent_of
from cytape.core.interrupts cimport OP_EFFORT, effort_so_far, spend
from cytape.core.typedefs cimport id_t
from cytape.tensor.recording.conversion_guards cimport seen
from cytape.tensor.values.spec cimport spec_of, symbolic_spec
from cytape.tensor.recording.state cimport (
    Recorder, accumulating, begin_computing, begin_recording_alone, building, end_computing, mark,
    observed, recording, this_thread)
from cytape.tensor.tensor cimport Tensor, another_handle, as_ndarray
from cytape.tensor.values.value cimport array_of, value_of_array
from libc.stdlib cimport calloc, free

from .dispatch cimport conform, dense, may_be
from .node_store cimport NodeStore

import numpy as np

from cytape.errors import InvalidGradientError, SymbolicTensorError
from cytape.tensor.indexed_slices import IndexedSlices


def fetch(TangentRecorder recorder not None, id_t id):
    """Return the tangent of a tensor as a tensor, None if it has none.

    Parameters
    ----------
    recorder : TangentRecorder
    id : int
        The tensor's.

    Returns
    -------
    Tensor or None
    """
    cdef void* tangent = tangent_of(recorder, id)
    if tangent == NULL:
        return None
    if type(<object>tangent) is Tensor:  # the user may change it in place
        return another_handle((<Tensor>tangent).held)
    return another_handle(<Value>tangent) if type(<object>tangent) is Value else <object>tangent


def follow_call(TangentRecorder recorder not None, Op op not None, list inputs not None,
                list outputs not None, dict attrs not None):
    """Let a recorder compute the tangents of an earlier call.

    Parameters
    ----------
    recorder : TangentRecorder
    op : Op
    inputs, outputs : list of Tensor
    attrs : dict
    """
    follow_for(recorder, op, [(<Tensor?>x).held for x in inputs],
               [(<Tensor?>y).held for y in outputs], attrs)


cdef int follow(Op op, list inputs, list outputs, dict attrs) except -1:
    cdef TangentRecorder accumulator
    for accumulator in accumulating() or ():
        follow_for(accumulator, op, inputs, outputs, attrs)
    return 0


cdef int follow_for(TangentRecorder accumulator, Op op, list inputs, list outputs,
                    dict attrs) except -1:
    cdef Value value
    cdef list recorders, tangents = []
    cdef bint plain, any_new = False
    if accumulator.entry is None:
        return 0  # left while an outer one computed
    if accumulator.reads is not None:
        # Replays of graphs also record nodes without a derivative.
        return note_reads(accumulator, inputs, outputs, getattr(op, "differentiable", True))
    for value in inputs:
        tangents.append(stored(accumulator, value))
    for value in outputs:
        any_new |= value.spec.trainable and tangent_of(accumulator, value.id) == NULL
    if not any_new or all_none(tangents):
        return 0
    recorders = this_thread().recorders
    graph = building()
    accumulator.push_state()
    try:
        if graph is not None:
            (<NodeStore>graph).differentiating += 1
        accumulator.accumulating = True
        begin_computing(accumulator)
        if accumulator.rule is not None:
            results = accumulator.rule(op, [another_handle(value) for value in inputs],
                                       [another_handle(value) for value in outputs],
                                       tangents, attrs)
        elif accumulator.by_transposition or not op.has_jvp():
            results = each_direction(accumulator, op, inputs, outputs, attrs, tangents, True, False)
        else:
            plain = not observed()
            for i, tangent in enumerate(tangents):
                if type(tangent) is Value:
                    tangents[i] = array_of(tangent) if plain else another_handle(tangent)
                elif tangent is not None:
                    # Another tensor: a rule may change it in place.
                    tangents[i] = array_of((<Tensor>tangent).held) if plain else (
                        another_handle((<Tensor>tangent).held))
            results = NotImplemented
            if not accumulator.use_batch:
                results = op.tangents(inputs, outputs, attrs, tangents, plain, False)
            elif op.takes_batches() and n_directions(tangents) != 0:
                results = batch_of_tangents(op, inputs, outputs, attrs, tangents, plain)
            if results is NotImplemented:
                results = each_direction(accumulator, op, inputs, outputs, attrs, tangents, False,
                                         plain)
        results = list(results) if isinstance(results, (tuple, list)) else [results]
        if len(results) != len(outputs):
            raise InvalidGradientError(
                f"the jvp of op {op.name!r} must return one tangent (or None) per output: expected "
                f"{len(outputs)}, got {len(results)}")
        for i, value in enumerate(outputs):
            if value.spec.trainable and results[i] is not None:
                if accumulator.rule is None:
                    results[i] = fitted(accumulator, op, results[i], value.spec, tangents)
                Py_INCREF(results[i])
                accumulator.store(value.id, <void*><PyObject*>results[i])
    finally:
        if graph is not None:
            (<NodeStore>graph).differentiating -= 1
        accumulator.pop_state()
        end_computing(recorders)
    return 0


cdef int note_reads(TangentRecorder accumulator, list inputs, list outputs,
                    bint differentiable) except -1:
    """Note inputs that outer recorders track, and mark the outputs that depend on them."""
    cdef Value value
    cdef bint follows = False
    for value in inputs:
        if value.spec.trainable and tangent_of(accumulator, value.id) != NULL:
            follows = True
            if accumulator.reads.follow(value.id):
                accumulator.reads.tensors.setdefault(value.id, another_handle(value))
    if not differentiable:
        return 0
    for value in outputs if follows and not accumulator.reads.silent else ():
        if value.spec.trainable:
            mark(accumulator, value.id)
    return accumulator.reads.called(inputs, outputs)


def note_call(list inputs not None, list outputs not None):
    """Note the inputs of a call whose ops are not recorded one by one.

    Parameters
    ----------
    inputs, outputs : list of Tensor
        Variables as they are read now.
    """
    cdef TangentRecorder accumulator
    cdef Tensor x
    for accumulator in accumulating() or ():
        if accumulator.reads is not None:
            note_reads(accumulator, [seen(x, x.held) for x in inputs], [x.held for x in outputs],
                       True)


cdef TangentRecorder sole_accumulator():
    cdef list accumulators = accumulating()
    cdef TangentRecorder accumulator
    if recording() is not None or building() is not None or accumulators is None or (
            len(accumulators) > 1):
        return None
    accumulator = accumulators[0]
    plain = not accumulator.use_batch and not accumulator.by_transposition
    return accumulator if plain and accumulator.rule is None else None


cdef object batch_of_tangents(Op op, list inputs, list outputs, dict attrs, list tangents,
                              bint plain):
    """Compute all directions at once; NotImplemented if the op needs unknown extents."""
    if building() is None:
        return op.tangents(inputs, outputs, attrs, tangents, plain, True)
    try:
        return op.tangents(inputs, outputs, attrs, tangents, plain, True)
    except SymbolicTensorError:
        return NotImplemented


cdef bint all_none(list tangents) except -1:
    for tangent in tangents:
        if tangent is not None:
            return False
    return True


cdef object stored(TangentRecorder accumulator, Value value):
    cdef void* tangent = tangent_of(accumulator, value.id) if value.spec.trainable else NULL
    return None if tangent == NULL else <object>tangent


cdef Value tangent_value(TangentRecorder accumulator, Value value):
    tangent = stored(accumulator, value)
    return tangent if tangent is None or type(tangent) is Value else (<Tensor>tangent).held


cdef Spec spec_of_tangent(Spec spec, npy_intp n_directions):
    return spec_of((n_directions,) + spec.shape, spec.dtype)


cdef Value aligned(Value tangent, int ndim):
    cdef tuple shape = tangent.spec.shape
    if len(shape) == ndim + 1:
        return tangent
    return value_of_array(array_of(tangent).reshape(
        shape[:1] + (1,) * (ndim + 1 - len(shape)) + shape[1:]))


cdef object fitted(TangentRecorder accumulator, Op op, result, Spec spec, list tangents):
    """Return a tangent in its primal's shape and dtype."""
    cdef Value value
    if isinstance(result, IndexedSlices):
        result = result.to_tensor()
    if type(result) is Value:
        result = another_handle(result)
    shape = spec.shape
    if accumulator.use_batch:
        n = n_directions(tangents)
        shape = None if shape is None else (None if n < 0 else n, *shape)
        fits = np.shape(result) == shape or (n < 0 or not spec.known) and may_be(
            result, symbolic_spec(shape, spec.dtype))
    else:
        fits = may_be(result, spec)
    if not fits:
        raise InvalidGradientError(f"the jvp of op {op.name!r} returned a tangent of shape "
                                   f"{np.shape(result)} for an output; its shape must be {shape}")
    if isinstance(result, Tensor):
        if type(result) is not Tensor:
            result = result.value()  # a variable can change, a tangent cannot
        result = conform.cast(result, spec.dtype)
        return result if observed() else (<Tensor>result).held
    value = value_of_array(as_ndarray(result))
    if value.spec.type_num != spec.type_num:
        value = (<Tensor>conform.cast(another_handle(value), spec.dtype)).held
    return value


cdef npy_intp n_directions(list tangents) except? -2:
    """Return the number of directions; -1 if it is known only when the graph runs."""
    for tangent in tangents:
        if tangent is not None:
            shape = (<Value>tangent).spec.shape if type(tangent) is Value else tangent.shape
            return -1 if shape is None or shape[0] is None else shape[0]


cdef list each_direction(TangentRecorder accumulator, Op op, list inputs, list outputs, dict attrs,
                         list tangents, bint transposed, bint plain):
    """Return the tangents of an op that takes one direction at a time, for one or a batch."""
    cdef list one, results = []
    cdef Value value
    cdef Recorder op_tape = recorded_alone(op, inputs, outputs, attrs) if transposed else None
    if not accumulator.use_batch:
        return one_direction(accumulator, op, inputs, outputs, attrs, tangents, op_tape, plain)
    if n_directions(tangents) < 0:
        raise SymbolicTensorError(
            f"op {op.name!r} takes one direction after the other here, and how many there are is "
            "known only when the graph runs. Differentiate a traced function instead of tracing "
            "the derivative, as cytape.hessian(cytape.function(f)) does, or give the arguments "
            "shapes that are known")
    for j in range(n_directions(tangents)):
        spend(effort_so_far(), OP_EFFORT)
        one = []
        for tangent in tangents:
            if type(tangent) is Value:
                tangent = another_handle(tangent)
            one.append(None if tangent is None else tangent[j])
        results.append(
            one_direction(accumulator, op, inputs, outputs, attrs, one, op_tape, plain))
    if not results:
        return [np.zeros((0,) + (<Value>value).spec.shape, (<Value>value).spec.dtype)
                for value in outputs]
    return [stacked(of_output, plain) for of_output in zip(*results)]


cdef list one_direction(TangentRecorder accumulator, Op op, list inputs, list outputs, dict attrs,
                        list tangents, Recorder op_tape, bint plain):
    if op_tape is None:
        results = op.tangents(inputs, outputs, attrs, tangents, plain, False)
        if results is not NotImplemented:
            return list(results) if isinstance(results, (tuple, list)) else [results]
        op_tape = recorded_alone(op, inputs, outputs, attrs)
        if plain:
            tangents = [None if x is None else value_of_array(as_ndarray(x)) for x in tangents]
    return transpose(accumulator, op_tape, outputs, tangents)


cdef object stacked(tuple results, bint plain):
    results = tuple([dense(result) if isinstance(result, (Value, IndexedSlices)) else result
                     for result in results])
    shapes = [np.shape(result) for result in results if result is not None]
    if not shapes:
        return None
    results = tuple([np.zeros(shapes[0]) if result is None else result for result in results])
    return np.stack(results)


cdef Recorder recorded_alone(Op op, list inputs, list outputs, dict attrs):
    """Return a tape with only this call on it."""
    cdef Recorder tape = Recorder(False, False)
    cdef list recorders = this_thread().recorders
    cdef Value value
    for value in inputs:
        if value.spec.trainable and value.id >= 0:
            tape.watch_id(value.id)
    begin_recording_alone(tape)
    try:
        op.record_call(inputs, outputs, attrs)
    finally:
        end_computing(recorders)
    return tape


cdef list transpose(TangentRecorder accumulator, Recorder op_tape, list outputs, list tangents):
    cdef Py_ssize_t n_inputs = len(tangents), n_outputs = len(outputs), i
    cdef char* trainable
    cdef void** row
    cdef list results = [None] * n_outputs
    if op_tape.table.n_ops == 0:
        return results  # nothing is differentiable here
    row = <void**>calloc(n_inputs + 2 * n_outputs, sizeof(void*))
    if row == NULL:
        raise MemoryError()
    trainable = <char*>(row + n_inputs + n_outputs)
    try:
        for i in range(n_inputs):
            row[i] = NULL if tangents[i] is None else <void*><PyObject*>tangents[i]
        for i in range(n_outputs):
            trainable[i] = (<Value>outputs[i]).spec.trainable
        accumulator.transpose(op_tape, row, trainable, row + n_inputs)
        for i in range(n_outputs):
            if row[n_inputs + i] != NULL:
                results[i] = <object>row[n_inputs + i]
                Py_DECREF(results[i])
    finally:
        free(row)
    return results
