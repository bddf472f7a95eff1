cimport cython
from cpython.ref cimport Py_DECREF, PyObject
from cytape.core.vspace cimport Backward, BackwardCall, OpType, release_backward
from cytape.tensor.recording.state cimport Counts, Recorder, counts, recording
from cytape.tensor.tensor cimport Tensor, new_tensor
from cytape.tensor.values.value cimport Value, array_of, value_of_array
from libc.stdint cimport int32_t, uint64_t

from cytape.ops.calls.dispatch cimport (
    give_all, gradients_of_outputs, is_followed, release_objects, value_of)
from cytape.ops.calls.symbolic cimport SymbolicGraph, graph_for
from cytape.ops.calls.tangents cimport follow

from .general_op cimport zeros_like
from .tape_entry cimport enter, items_of

import numpy as np

from cytape.ops.calls.late import upper
from cytape.tensor.making import convert_to_tensor

cdef Counts* recorders = counts()
cdef dict custom_ops = {}


cdef void release_custom(void** refs, int32_t n_refs, object keeper) noexcept:
    release_backward(refs, n_refs, keeper)
    release_objects(refs, n_refs - 1, keeper)


class GradientsIfNeeded:
    """Deferred gradients, which a backward function of `custom_call` may return.

    Parameters
    ----------
    compute : callable
        Called with a tuple that says for each input whether its gradient is needed; returns per
        input a gradient, or None.
    """

    __slots__ = ("compute",)

    def __init__(self, compute):
        self.compute = compute


@cython.final
cdef class CustomOp(Op):
    def __init__(self, str name):
        self.op_type = OpType(name)
        self.op_type.kind.release = release_custom
        self.op_type.kind.owner = <void*>self
        self.moving = ~<uint64_t>0

    cdef bint has_jvp(self) noexcept:
        return self.with_jvp

    cdef int record_call(self, list inputs, list outputs, dict attrs) except -1:
        """Record a call. The tape's keeper owns the backward function, the entry does not."""
        cdef Recorder tape
        cdef bint entered
        cdef PyObject* tail
        holder = attrs["holder"]
        tail = <PyObject*>holder
        for tape in recording() or ():
            if tape.keeper is None:
                tape.keeper = set()
            tape.keeper.add(holder)
            entered = False
            try:
                entered = enter(tape, self, items_of(inputs), NULL, <int>len(inputs),
                                items_of(outputs), <int>len(outputs), &tail, 1, False)
            finally:
                if entered:
                    Py_DECREF(holder)
                else:
                    tape.keeper.discard(holder)
        return 0

    cdef object tail_of(self, dict attrs):
        return attrs["holder"]

    cdef object tangents(self, list inputs, list outputs, dict attrs, list tangents, bint plain,
                         bint batched):
        cdef Value value
        fill = not attrs["optional"]
        return attrs["jvp"](*[
            convert_to_tensor(tangent) if tangent is not None
            else zeros_like(value, tangents, False, False) if fill and value.spec.trainable
            else None
            for value, tangent in zip(inputs, tangents)])

    cdef int backward(self, BackwardCall* call) except -1:
        function = (<Backward>call.refs[call.n_refs - 1]).function
        cdef int i
        found = function(*gradients_of_outputs(call, False))
        if type(found) is GradientsIfNeeded:
            found = found.compute(tuple([call.needed[i] != 0 for i in range(call.n_inputs)]))
        cdef list gradients = list(found)
        for i, gradient in enumerate(gradients):
            if type(gradient) is np.ndarray and gradient.flags.writeable:
                gradients[i] = gradient.copy()  # the user's function may reuse its memory
        return give_all(self, call, gradients)


def custom_call(str name, results, inputs, backward, jvp=None, bint optional=False) -> list:
    """Return results as the outputs of one op whose rules are Python functions.

    Parameters
    ----------
    name : str
        The op type.
    results : sequence of Tensor or ndarray
    inputs : sequence of Tensor or Variable
    backward : callable
        Called with one gradient per output (zeros where none arrived); returns per input a
        gradient or None, or a `GradientsIfNeeded`.
    jvp : callable, optional
        Called with one tangent per input (zeros for those without, None for those that can have
        none); returns a tangent or None per output. Without it, and in graphs, `backward` is
        transposed.
    optional : bool, optional
        Whether, outside of graphs, zero gradients and tangents are passed as None.

    Returns
    -------
    list of Tensor
        New handles of the results. Rules may hold the given results without keeping the op's entry
        on a tape alive.
    """
    cdef SymbolicGraph graph = graph_for([*inputs, *results]) if recorders.symbolic else None
    if graph is not None:
        return upper("custom_call_in_graph")(graph, name, results, inputs, backward)
    outputs = [new_tensor(value_of_array(array_of(value_of(result, True)))) for result in results]
    record_custom(name, outputs, inputs, backward, jvp, optional)
    return outputs


def record_custom(op_type, outputs, inputs, backward, jvp=None, bint optional=False,
                  bint lazy=False, deleter=None) -> bool:
    """Record tensors that were just computed as the outputs of one op, as `custom_call` does.

    Parameters
    ----------
    op_type : str or OpType
    outputs, inputs, backward, jvp
        As for `custom_call`.
    optional : bool, optional
        Whether zero gradients and tangents are passed as None. An OpType has its own list of the
        gradients that may be None.
    lazy : bool, optional
        Whether `backward` is a function that returns the backward function, called on first use.
    deleter : callable, optional
        Called with the backward function when the last recorder releases it.

    Returns
    -------
    bool
        Whether a recorder tracks any of the inputs.
    """
    cdef CustomOp op
    cdef Tensor output
    if not is_followed(inputs):
        return False
    op, attrs = described_call(
        op_type, backward() if lazy else backward, jvp, optional, deleter)
    in_values = [value_of(x, True) for x in inputs]
    out_values = [output.held for output in outputs]
    op.record_call(in_values, out_values, attrs)
    follow(op, in_values, out_values, attrs)
    return True


def described_call(op_type, backward, jvp=None, bint optional=False, deleter=None) -> tuple:
    """Return the op and the attributes of a call with rules of its own; see `record_custom`."""
    cdef Backward holder = Backward()
    holder.function = backward
    holder.deleter = deleter
    return custom_op(op_type, jvp is not None, optional), {
        "holder": holder, "backward": backward, "jvp": jvp, "optional": optional}


cdef CustomOp custom_op(op_type, bint with_jvp, bint optional):
    cdef str name = op_type if isinstance(op_type, str) else op_type.name
    cdef uint64_t optional_gradients = ~<uint64_t>0 if optional else 0
    if isinstance(op_type, OpType):
        optional_gradients = (<OpType>op_type).kind.optional_gradients
    key = name, with_jvp, optional_gradients
    cdef CustomOp op = custom_ops.get(key)
    if op is None:
        op = custom_ops[key] = CustomOp(name)
        op.op_type.kind.optional_gradients = optional_gradients
        op.with_jvp = with_jvp
    return op
