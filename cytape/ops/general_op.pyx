cimport cython
from cytape.core.trace cimport Op as TraceOp
from cytape.core.trace cimport UNTRACED, append_op, new_slot, next_op, trace_slot
from cytape.core.typedefs cimport NO_ID, NO_INDEX, index_t
from cytape.core.vspace cimport Backward, OpType, release_backward
from cytape.tensor.spec cimport Spec
from cytape.tensor.state cimport Counts, Recorder, counts, recording
from cytape.tensor.tensor cimport Tensor, another_handle, as_ndarray, new_tensor
from cytape.tensor.value cimport copy_of_array, value_of_array
from libc.stdint cimport int32_t

from .dispatch cimport (
    documentation, give_all, gradients_of_outputs, is_followed, ndarray_of, opts_out, owned,
    record_refs, release_objects, restored, spec_of_ref, tensor_value, value_of)

import numpy as np

from cytape.errors import NotDifferentiableError

cdef Counts* recorders = counts()
cdef dict custom_ops = {}


@cython.final
cdef class OpCall:
    """One call of an op, as its derivative rules see it.

    Attributes
    ----------
    inputs, outputs : tuple of Tensor
        Only those that the op's declaration saves; None for the others. Where nobody records what a
        rule does they are plain arrays, and so are the gradients it is called with.
    input_specs, output_specs : tuple of Spec
    attrs : dict
    needs : tuple of bool
        Per input: is its gradient wanted?
    """

    @property
    def type(self) -> str:
        """The op type."""
        return self.op.name

    @property
    def inputs(self) -> tuple:
        """The saved inputs."""
        return tuple([restored(ref, self.plain) for ref in self.input_refs])

    @property
    def outputs(self) -> tuple:
        """The saved outputs."""
        return tuple([restored(ref, self.plain) for ref in self.output_refs])

    def get_attr(self, name):
        """Return a static argument of the call.

        Parameters
        ----------
        name : str

        Returns
        -------
        object

        Raises
        ------
        KeyError
            If the call was made without it.
        """
        return self.attrs[name]


cdef class GeneralOp(Op):
    def __init__(self, str name, forward, vjp=None, jvp=None, saved_inputs=None, saved_outputs=(),
                 optional_gradients=(), bint linear=False, bint differentiable=True):
        self.op_type = OpType(name, optional_gradients)
        self.op_type.kind.release = release_objects
        self.op_type.kind.owner = <void*>self
        self.forward = forward
        self.vjp = vjp
        self.jvp = jvp
        self.saved_inputs = saved_inputs
        self.saved_outputs = tuple(saved_outputs)
        self.linear = linear
        self.differentiable = differentiable

    def define(self, vjp=None, jvp=None):
        """Give the op a rule that its declaration left out."""
        if vjp is not None:
            self.vjp = vjp
        if jvp is not None:
            self.jvp = jvp

    cdef object call1(self, x):
        return self(x)

    cdef object call2(self, x, y):
        return NotImplemented if opts_out(x) or opts_out(y) else self(x, y)

    @property
    def __doc__(self) -> str:
        return documentation(self)

    def __call__(self, *inputs, **attrs):
        for x in inputs:
            if isinstance(x, Tensor):
                break
        else:
            return self.forward(*inputs, **attrs)
        result = self.forward(*[ndarray_of(x) for x in inputs], **attrs)
        if isinstance(result, (tuple, list)):
            outputs = [result_tensor(array, inputs) for array in result]
            if recorders.entered and is_followed(inputs):
                self.record(inputs, outputs, attrs)
            kind = type(result)
            return kind(*outputs) if hasattr(kind, "_fields") else kind(outputs)
        output = result_tensor(result, inputs)
        if recorders.entered and is_followed(inputs):
            self.record(inputs, [output], attrs)
        return output

    cdef int record(self, inputs, list outputs, dict attrs) except -1:
        cdef Py_ssize_t n_inputs = len(inputs), n_outputs = len(outputs), i
        cdef list refs = [output.spec for output in outputs]
        cdef list ids = []
        cdef Value value
        if not self.differentiable or not any([(<Spec>spec).trainable for spec in refs]):
            return 0
        if self.linear and n_inputs == 1 and n_outputs == 1:
            value = tensor_value(inputs[0])
            if not value.spec.trainable:
                return 0
            attrs = {name: frozen(attr) for name, attr in attrs.items()}
            return self.record_linear(value, (<Tensor>outputs[0]).held, attrs)
        for i, x in enumerate(inputs):
            saved = self.saved_inputs is None or i in self.saved_inputs
            value = value_of(x, saved)
            refs.append(value if saved else value.spec)
            ids.append(value.id if value.spec.trainable else NO_ID)
        for i, output in enumerate(outputs):
            refs.append((<Tensor>output).held if i in self.saved_outputs else None)
        refs.append({name: frozen(attr) for name, attr in attrs.items()})
        ids += [output.id for output in outputs]
        return record_refs(&self.op_type.kind, ids, n_inputs, n_outputs, refs, False)

    cdef int record_linear(self, Value x, Value out, dict attrs) except -1:
        """The same, faster, for one input and output that are not saved, and immutable attributes.
        """
        cdef Recorder recorder
        cdef TraceOp* entry
        cdef void** refs
        cdef index_t slots[2]
        if not out.spec.trainable:
            return 0
        for recorder in recording() or ():
            slots[0] = trace_slot(recorder, x.id)
            if slots[0] == NO_INDEX or recorder.slots[slots[0]].op == UNTRACED:
                continue
            slots[1] = new_slot(recorder, out.id, UNTRACED)
            entry = next_op(recorder, 2, 4)
            recorder.table.args[entry.args] = slots[0]
            recorder.table.args[entry.args + 1] = slots[1]
            refs = recorder.table.refs + entry.refs
            refs[0] = owned(out.spec)
            refs[1] = owned(x.spec)
            refs[2] = owned(None)
            refs[3] = owned(attrs)
            append_op(recorder, &self.op_type.kind, 1, 1)
        return 0

    cdef int backward(self, BackwardCall* call) except -1:
        cdef int i, n_in = call.n_inputs, n_out = call.n_outputs
        cdef OpCall view
        if self.vjp is None:
            return Op.backward(self, call)
        refs = [<object>call.refs[i] for i in range(call.n_refs)]
        view = OpCall.__new__(OpCall)
        view.op = self
        view.plain = recording() is None
        view.output_specs = tuple(refs[:n_out])
        view.input_refs = tuple(refs[n_out:n_out + n_in])
        view.input_specs = tuple([spec_of_ref(ref) for ref in view.input_refs])
        view.output_refs = tuple(refs[n_out + n_in:n_out + n_in + n_out])
        view.attrs = refs[call.n_refs - 1]
        view.needs = tuple([bool(call.needed[i]) for i in range(n_in)])
        gradients = self.vjp(view, *gradients_of_outputs(call, view.plain))
        if not isinstance(gradients, (tuple, list)):
            gradients = (gradients,)
        return give_all(self, call, gradients)

    def jvp_of(self, inputs, tangents, **attrs):
        """Return the tangents of the outputs for tangents (None: zero) of the inputs.

        With one output that is the tangent itself, else a tuple of them.
        """
        cdef OpCall view
        inputs = [another_handle(value_of(x, True)) for x in inputs]
        if self.linear:
            zeros = [np.zeros(x.shape, x.dtype) for x in inputs]
            return self(*[another_handle(value_of(zero if tangent is None else tangent, True))
                          for zero, tangent in zip(zeros, tangents)], **attrs)
        if not self.differentiable:
            return None
        if self.jvp is None:
            raise NotDifferentiableError(
                f"op {self.op_type.name!r} has no forward-mode rule: register one with "
                "cytape.register_jvp")
        outputs = self(*inputs, **attrs)
        outputs = tuple(outputs) if isinstance(outputs, (tuple, list)) else (outputs,)
        view = OpCall.__new__(OpCall)
        view.op = self
        view.input_refs = tuple([(<Tensor>x).held for x in inputs])
        view.output_refs = tuple([(<Tensor>y).held for y in outputs])
        view.input_specs = tuple([x.spec for x in inputs])
        view.output_specs = tuple([y.spec for y in outputs])
        view.attrs = attrs
        view.needs = tuple([tangent is not None for tangent in tangents])
        return self.jvp(view, *tangents)


cdef object frozen(value):
    """An attribute as the caller cannot change it any more."""
    if isinstance(value, list):
        return tuple([frozen(item) for item in value])
    return value.copy() if type(value) is np.ndarray else value


cdef Tensor result_tensor(result, inputs):
    """What a forward function returned, copied if it is the data of an array that may change."""
    array = as_ndarray(result)
    for x in inputs:
        if type(x) is np.ndarray and np.may_share_memory(array, x):
            return new_tensor(copy_of_array(array))
    return new_tensor(value_of_array(array))


cdef void release_custom(void** refs, int32_t n_refs, object keeper) noexcept:
    release_backward(refs, n_refs, keeper)
    release_objects(refs, n_refs - 1, keeper)


@cython.final
cdef class CustomOp(Op):
    def __init__(self, str name):
        self.op_type = OpType(name)
        self.op_type.kind.release = release_custom
        self.op_type.kind.owner = <void*>self

    cdef int backward(self, BackwardCall* call) except -1:
        function = (<Backward>call.refs[call.n_refs - 1]).function
        # What a user's function returns may be an array that it writes into again.
        return give_all(self, call, [
            gradient.copy() if type(gradient) is np.ndarray and gradient.flags.writeable
            else gradient for gradient in function(*gradients_of_outputs(call, False))])


def record_custom(str name, outputs, inputs, backward):
    """Record one op with a Python backward function on the recorders that follow an input.

    Parameters
    ----------
    name : str
        The op type.
    outputs : sequence of Tensor
    inputs : sequence of Tensor or Variable
    backward : callable
        Called with one gradient per output (zeros where none arrived); returns a gradient or None
        per input.
    """
    cdef CustomOp op = custom_ops.get(name)
    cdef Backward holder
    if not is_followed(inputs):
        return
    if op is None:
        op = custom_ops[name] = CustomOp(name)
    values = [value_of(x, True) for x in inputs]
    holder = Backward()
    holder.function = backward
    ids = [(<Value>value).id for value in values] + [output.id for output in outputs]
    refs = [output.spec for output in outputs]
    refs += [(<Value>value).spec for value in values]
    refs.append(holder)
    record_refs(&op.op_type.kind, ids, len(values), len(outputs), refs, True)
