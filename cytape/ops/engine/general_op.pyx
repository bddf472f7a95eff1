cimport numpy as cnp
from cpython.ref cimport Py_INCREF, Py_XDECREF, PyObject
from cpython.tuple cimport PyTuple_New, PyTuple_SET_ITEM
from cytape.core.accumulator cimport tangent_of
from cytape.core.vspace cimport OpType
from cytape.tensor.values.buffer cimport call_with_arrays
from cytape.tensor.values.spec cimport spec_of_array, symbolic_spec
from cytape.tensor.recording.state cimport (
    Counts, TangentRecorder, accumulating, building, counts, observed, recording)
from cytape.tensor.tensor cimport Tensor, another_handle, as_ndarray, new_tensor
from cytape.tensor.values.value cimport copy_of_array, is_symbolic, strided_value, value_of_array
from libc.stdint cimport uint64_t
from numpy cimport ndarray, npy_intp

from cytape.ops.calls.dispatch cimport (
    Lowering, conform, dense_value, documentation, frozen_attrs, input_ref, is_among, is_followed,
    ndarray_of, owned, release_objects, restored, tensor_value, value_of, with_lists_joined)
from cytape.ops.calls.op_call cimport backward_by_rule
from cytape.ops.calls.symbolic cimport SymbolicGraph, build, graph_for
from cytape.ops.calls.tangents cimport all_none, follow, follow_for, sole_accumulator, tangent_value

from .batched_call cimport BatchedCall
from .tape_entry cimport items_of, record

import numpy as np

from cytape.errors import DetachedError, NotDifferentiableError, SymbolicTensorError
from cytape.ops.engine.batch_axis import of_linear
from cytape.tensor.values.user_warnings import user_line

cnp.import_array()

cdef enum:
    MOST_FOLLOWED = 8  # inputs of an op whose loops serve forward over reverse, too

cdef Counts* recorders = counts()


cdef object plain_attribute(GeneralOp op, str name, x):
    """Return an attribute with arrays for tensors: ops have no derivative in attributes."""
    if not isinstance(x, Tensor):
        return x
    try:
        return np.asarray(x)[()]
    except DetachedError as error:
        raise DetachedError(
            f"op {op.name!r} has no derivative with respect to its argument {name!r}, but got a "
            f"tensor that is being recorded. Pass {name}.numpy() if the derivative should stop here"
        ) from error


cdef uint64_t bits_of(positions) except? 0:
    """Return a set of positions as bits; the last bit stands for all later positions, too."""
    cdef uint64_t bits = 0
    for i in positions[:64] if isinstance(positions, range) else positions:
        if i < 0:
            raise ValueError("saved_inputs and saved_outputs must be positions counted from 0, got "
                             f"{positions}")
        bits |= <uint64_t>1 << min(<Py_ssize_t>i, 63)
    return bits


cdef tuple arrays_of(tuple inputs):
    cdef tuple arrays = PyTuple_New(len(inputs))
    cdef Py_ssize_t i
    for i in range(len(inputs)):
        x = ndarray_of(inputs[i])
        Py_INCREF(x)
        PyTuple_SET_ITEM(arrays, i, x)
    return arrays


cdef class GeneralOp(Op):
    def __init__(self, str name, forward, vjp=None, jvp=None, saved_inputs=None, saved_outputs=(),
                 optional_gradients=(), optional_tangents=(), batched=None, bint linear=False,
                 bint differentiable=True, shape_rule=None):
        self.op_type = OpType(name, optional_gradients)
        self.op_type.kind.release = release_objects
        self.op_type.kind.owner = <void*>self
        self.forward = forward
        self.vjp = vjp
        self.jvp = jvp
        self.saved_inputs = saved_inputs
        self.saved_outputs = saved_outputs if isinstance(saved_outputs, range) else (
            tuple(saved_outputs))
        self.kept.inputs = ~<uint64_t>0 if saved_inputs is None else bits_of(saved_inputs)
        self.kept.outputs = bits_of(self.saved_outputs)
        self.moving = ~<uint64_t>0
        self.optional_tangents = optional_tangents
        self.batched = batched
        self.linear = linear
        if linear and batched is not None:
            self.batch = of_linear(batched)
        self.differentiable = differentiable
        self.shape_rule = shape_rule
        if self.lowering == Lowering.CALLED and isinstance(forward, np.ufunc) and (
                forward.nout == 1 and forward.signature is None):
            self.lowering = Lowering.LOOPED

    def define(self, vjp=None, jvp=None):
        """Give the op a rule that its declaration left out."""
        if vjp is not None:
            self.vjp = vjp
        if jvp is not None:
            self.jvp = jvp

    @property
    def __doc__(self) -> str:
        return documentation(self)

    def __call__(self, *inputs, **attrs):
        if attrs:
            for x in attrs.values():
                if isinstance(x, Tensor):
                    attrs = {name: plain_attribute(self, name, x) for name, x in attrs.items()}
                    break
        joined = with_lists_joined(inputs)
        if joined is not None:
            return self(*joined, **attrs)
        for x in inputs:
            if isinstance(x, Tensor):
                break
        else:
            return self.forward(*inputs, **attrs)
        if recorders.symbolic:
            graph = graph_for(inputs)
            if graph is not None:
                return build(graph, self, inputs, attrs)
        result = call_with_arrays(self.forward, arrays_of(inputs), attrs)
        if isinstance(result, (tuple, list)):
            outputs = [result_tensor(self, array, inputs) for array in result]
            if self.makes_views:
                self.note_views(inputs, outputs, attrs)
            if recorders.entered and self.differentiable and is_followed(inputs):
                self.tell(inputs, outputs, attrs)
            kind = type(result)
            if kind is tuple:
                return tuple(outputs)
            return kind(*outputs) if hasattr(kind, "_fields") else kind(outputs)
        output = result_tensor(self, result, inputs)
        if self.makes_views:
            self.note_views(inputs, output, attrs)
        if recorders.entered and self.differentiable and is_followed(inputs):
            self.tell(inputs, [output], attrs)
        return output

    cdef object infer(self, list inputs, dict attrs):
        if self.is_users:  # NumPy refuses lists that cytape's own ops refuse, too
            attrs = frozen_attrs(attrs)
        if self.shape_rule is not None:
            return self.shape_rule(*[(<Value>value).spec for value in inputs], **attrs)
        return by_example(self, inputs, attrs)

    cdef int tell(self, tuple inputs, list outputs, dict attrs) except -1:
        """Record a call on the recorders of this thread."""
        cdef list in_values = [None] * len(inputs), out_values = [None] * len(outputs)
        cdef Py_ssize_t i
        attrs = frozen_attrs(attrs)
        for i in range(len(in_values)):
            in_values[i] = value_of(inputs[i], is_among(self.kept.inputs, i))
        for i in range(len(out_values)):
            out_values[i] = (<Tensor>outputs[i]).held
        self.record_call(in_values, out_values, attrs)
        if accumulating() is not None:
            follow(self, in_values, out_values, attrs)
        return 0

    cdef int record_call(self, list inputs, list outputs, dict attrs) except -1:
        cdef Value value
        cdef PyObject* tail[2]
        cdef bint trainable = False, has_line = self.vjp is None
        for value in outputs:
            trainable |= value.spec.trainable
        if not trainable or not self.differentiable:
            return 0
        line = user_line() if has_line else None  # for an error; of a trace, where it was called
        tail[0], tail[1] = <PyObject*>line, <PyObject*>attrs
        return record(self, items_of(inputs), NULL, <int>len(inputs), items_of(outputs),
                      <int>len(outputs), &tail[not has_line], 1 + has_line, False)

    cdef int record_few(self, PyObject** inputs, int n, Value out, dict attrs) except -1:
        """Record a call with a new output, of an op with a vjp and immutable attributes."""
        cdef PyObject* output = <PyObject*>out
        cdef PyObject* tail = <PyObject*>attrs
        if n == 1:  # known to the C compiler, which unrolls loops
            return record(self, inputs, NULL, 1, &output, 1, &tail, 1, True)
        return record(self, inputs, NULL, n, &output, 1, &tail, 1, True)

    cdef int tell_few(self, PyObject** inputs, int n, Value out, dict attrs) except -1:
        """Record the call on tapes and accumulators."""
        cdef int i
        self.record_few(inputs, n, out, attrs)
        if recorders.accumulators.count:
            self.follow_by_loops([<object>inputs[i] for i in range(n)], out, attrs)
        return 0

    cdef int follow_by_loops(self, list inputs, Value out, dict attrs) except -1:
        """Compute the tangents of a call with one output for all accumulators, in C if possible."""
        cdef TangentRecorder accumulator
        cdef list tangents
        cdef Value value, tangent
        for accumulator in accumulating() or ():
            tangent = None
            if not is_symbolic(out) and accumulator.outermost and (
                    not accumulator.by_transposition) and (
                    accumulator.rule is None):  # a user's rule may keep anything
                tangents = [tangent_value(accumulator, value) for value in inputs]
                if all_none(tangents) or tangent_of(accumulator, out.id) != NULL:
                    continue
                tangent = self.tangent_by_loops(inputs, tangents, attrs, accumulator.use_batch)
            if tangent is None:
                follow_for(accumulator, self, inputs, [out], attrs)
            else:
                accumulator.store(out.id, owned(tangent))
        return 0

    cdef Value tangent_by_loops(self, list inputs, list tangents, dict attrs, bint batched):
        return None

    cdef bint backward_by_loops(self, BackwardCall* call) except -1:
        return False

    cdef bint backward_with_tangents(self, BackwardCall* call,
                                     TangentRecorder accumulator) except -1:
        """Run the loops for the gradient and for its tangent, with one accumulator.

        Return False, with no effect, if the op has no loops or a saved value has a tangent.
        """
        cdef BackwardCall alone = call[0], of_tangent
        cdef void* nothing[MOST_FOLLOWED]
        cdef void* results[MOST_FOLLOWED]
        cdef void* seed
        cdef Value g, tangent
        cdef int i
        if call.n_inputs > MOST_FOLLOWED or call.n_outputs > 1 or self.kept.outputs:
            return False
        for i in range(call.n_inputs):
            nothing[i] = results[i] = NULL  # sums are recorded, too
            if type(<object>input_ref(call, i)) is Value and (
                    tangent_value(accumulator, <Value>input_ref(call, i)) is not None):
                return False
        g = dense_value(<object>call.output_gradients[0])  # held: loops do not reuse it
        tangent = tangent_value(accumulator, g)
        if tangent is not None and tangent.spec is not g.spec:
            return False
        alone.arrived = nothing
        if not self.backward_by_loops(&alone):
            return False
        if tangent is None:
            return True
        seed = <void*>tangent
        of_tangent = alone
        of_tangent.output_gradients = &seed
        of_tangent.input_gradients = results
        if not self.backward_by_loops(&of_tangent):
            for i in range(call.n_inputs):
                Py_XDECREF(<PyObject*>call.input_gradients[i])
                call.input_gradients[i] = NULL
            return False
        for i in range(call.n_inputs):
            if results[i] != NULL:
                accumulator.store((<Value>call.input_gradients[i]).id, results[i])
        return True

    cdef int backward(self, BackwardCall* call) except -1:
        cdef TangentRecorder accumulator
        if not observed():
            if self.backward_by_loops(call):
                return 0
        else:
            graph = building()
            if graph is not None and recording() is None and accumulating() is None and (
                    self.backward_in_graph(call, graph)):
                return 0
            accumulator = sole_accumulator()
            if accumulator is not None and self.backward_with_tangents(call, accumulator):
                return 0
        return self.backward_by_vjp(call)

    cdef bint backward_in_graph(self, BackwardCall* call, SymbolicGraph graph) except -1:
        return False

    cdef int backward_by_vjp(self, BackwardCall* call) except -1:
        if self.vjp is not None:
            return backward_by_rule(self, call, self.vjp, self.kept.outputs, None, -1)
        line = <object>call.refs[call.n_refs - 2]
        place = f", and was recorded {line}" if isinstance(line, str) else ""
        raise NotDifferentiableError(
            f"op {self.op_type.name!r} has no gradient{place}: register one with "
            "cytape.register_gradient, or stop the gradient with cytape.stop_gradient")

    cdef object tangents(self, list inputs, list outputs, dict attrs, list tangents, bint plain,
                         bint batched):
        cdef Value value
        cdef Py_ssize_t i
        if not self.differentiable or self.linear and self.moving == 1 and tangents[0] is None:
            return [None] * len(outputs)
        tangents = list(tangents)  # the caller differentiates direction by direction, if need be
        for i, value in enumerate(inputs):
            # A linear op needs a tangent for every input that moves, zeros for integers too.
            if self.linear and not is_among(self.moving, i):
                tangents[i] = restored(value, plain)
            elif tangents[i] is None and (self.linear or value.spec.trainable) and (
                    i not in self.optional_tangents):
                tangents[i] = zeros_like(value, tangents, plain, batched)
        if self.linear:
            if batched and self.batched is None:
                return self.in_batch(inputs, outputs, attrs, tangents, [
                    is_among(self.moving, i) for i in range(len(tangents))])
            return (self.batched if batched else self.forward if plain else self)(
                *tangents, **attrs)
        view = self.view_of(inputs, outputs, attrs, tangents, plain)
        return (self.batched if batched else self.jvp)(view, *tangents)

    cdef object in_batch(self, list inputs, list outputs, dict attrs, list operands, list mapped):
        """Call the op by its rule for an added axis; tangents among the operands have that axis."""
        cdef BatchedCall call = BatchedCall.__new__(BatchedCall)
        cdef Value value
        call.op = call.function = self
        call.attrs = attrs
        call.inputs = operands
        call.mapped = mapped
        call.input_specs = [value.spec for value in inputs]
        call.output_specs = [value.spec for value in outputs]
        moving = operands[mapped.index(True)]
        if type(moving) is ndarray:
            call.function = self.forward
        shape = moving.shape
        call.extent = None if shape is None else shape[0]
        return self.batch(call)

    cdef OpCall view_of(self, list inputs, list outputs, dict attrs, list tangents, bint plain):
        """Return a call as the rules of forward mode see it."""
        cdef OpCall view = OpCall.__new__(OpCall)
        cdef Value value
        view.op = self
        view.plain = plain
        view.input_refs = tuple(inputs)
        view.output_refs = tuple(outputs)
        view.output_specs = tuple([value.spec for value in outputs])
        view.attrs = attrs
        view.needs = tuple([tangent is not None for tangent in tangents])
        return view

    cdef bint has_jvp(self) noexcept:
        return self.linear or not self.differentiable or self.jvp is not None

    cdef bint takes_batches(self) noexcept:
        return not self.differentiable or (
            (self.batch if self.linear else self.batched) is not None)


cdef object by_example(GeneralOp op, list inputs, dict attrs):
    """Return the specs of the outputs, inferred by calling the op with arrays of ones.

    Extents of the outputs that depend on unknown extents are unknown.
    """
    cdef Value value
    cdef list examples = [], specs = []
    cdef bint known = True
    for value in inputs:
        if value.spec.shape is None:
            raise SymbolicTensorError(
                f"op {op.op_type.name!r} needs to know the number of axes of its inputs")
        known &= value.spec.known
    for extent in [24] if known else [24, 36]:
        arrays = []
        for value in inputs:
            shape = [extent if known_extent is None else known_extent
                     for known_extent in value.spec.shape]
            arrays.append(np.broadcast_to(np.ones((), value.spec.dtype), shape))
        with np.errstate(all="ignore"):
            try:
                examples.append(op.forward(*arrays, **attrs))
            except (ValueError, TypeError, IndexError) as error:
                shapes = " and ".join([str(value.spec.shape) for value in inputs])
                error.add_note(f"op {op.op_type.name!r} was called with ones, of the shapes of its "
                               f"inputs ({shapes}), to learn the shape of its result; say it by a "
                               "shape_rule where it is declared")
                raise
    many = isinstance(examples[0], (tuple, list))
    for results in zip(*examples) if many else [examples]:
        arrays = [np.asarray(result) for result in results]
        shape = [extent if arrays[len(arrays) - 1].shape[axis] == extent else None
                 for axis, extent in enumerate(arrays[0].shape)]
        specs.append(symbolic_spec(tuple(shape), arrays[0].dtype))
    if not many:
        return specs[0]
    kind = type(examples[0])
    return kind(*specs) if hasattr(kind, "_fields") else kind(specs)


cdef object zeros_like(Value value, list tangents, bint plain, bint batched):
    cdef tuple shape
    if batched:
        moving = [tangent for tangent in tangents if tangent is not None][0]
        if not value.spec.known or moving.shape[0] is None:
            return conform.zeros_in_batch(moving, another_handle(value))
        shape = moving.shape[:1] + value.spec.shape
    elif not value.spec.known:
        return conform.broadcast_to(
            new_tensor(value_of_array(np.zeros((), value.spec.dtype))), value.spec.extents)
    else:
        shape = value.spec.shape
    zeros = np.zeros(shape, value.spec.dtype)
    return zeros if plain else new_tensor(value_of_array(zeros))


cdef bint is_held(base, inputs) except -1:
    """Return whether an array shares memory with one of the operands."""
    if type(base) is Value:
        for x in inputs:
            if tensor_value(x) is base:
                return True
    return False


cdef bint may_share_memory(ndarray x, ndarray y) noexcept:
    """Return whether the bounds of two arrays overlap, as `numpy.may_share_memory`."""
    cdef char* x_end
    cdef char* y_end
    cdef char* x_start = start_of_memory(x, &x_end)
    cdef char* y_start = start_of_memory(y, &y_end)
    return x_start < y_end and y_start < x_end


cdef char* start_of_memory(ndarray x, char** end) noexcept:
    cdef char* start = cnp.PyArray_BYTES(x)
    cdef npy_intp reach
    cdef int axis
    end[0] = start
    if cnp.PyArray_SIZE(x) == 0:
        return start
    for axis in range(cnp.PyArray_NDIM(x)):
        reach = (cnp.PyArray_DIMS(x)[axis] - 1) * cnp.PyArray_STRIDES(x)[axis]
        if reach < 0:
            start += reach
        else:
            end[0] += reach
    end[0] += cnp.PyArray_ITEMSIZE(x)
    return start


cdef Tensor result_tensor(GeneralOp op, result, inputs):
    """Return a forward function's result, copied if it shares memory with a writable array."""
    cdef ndarray array = as_ndarray(result)
    cdef PyObject* owner = cnp.PyArray_BASE(array)
    cdef object base = None if owner == NULL else <object>owner
    cdef Value value
    while type(base) is ndarray:
        base = base.base
    for x in inputs:
        if type(x) is ndarray and may_share_memory(array, x):
            value = copy_of_array(array)
            break
    else:
        if type(base) is Value and cnp.PyArray_ISALIGNED(array):
            value = strided_value(
                spec_of_array(array), cnp.PyArray_BYTES(array), cnp.PyArray_STRIDES(array), base)
        else:
            value = value_of_array(array)
    value.is_part = is_held(base, inputs) and op.lowering != Lowering.SHOWN
    return new_tensor(value)
