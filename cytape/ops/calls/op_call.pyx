cimport cython
from cpython.ref cimport Py_INCREF
from cpython.tuple cimport PyTuple_New, PyTuple_SET_ITEM
from cytape.tensor.recording.state cimport observed
from cytape.tensor.tensor cimport Tensor
from cytape.tensor.values.buffer cimport WORTH_LENDING, with_kept_memory
from cytape.tensor.values.value cimport Value
from libc.stdint cimport uint64_t

from .dispatch cimport (
    conform, give_all, gradients_of_outputs, is_among, restored, spec_of_ref)
from .symbolic cimport NO_ATTRS

from functools import cache

from cytape.errors import InvalidGradientError


@cython.final
@cython.freelist(8)
cdef class OpCall:
    """One call of an op, as its derivative rules see it.

    Attributes
    ----------
    inputs, outputs : tuple of Tensor
        The saved values. Using one that the op's declaration does not save is an error. If no
        recorder is active they are plain arrays, and so are the gradients that the rule is called
        with (tensors if the op is declared with `rule_takes_tensors`).
    input_specs, output_specs : tuple of Spec
    attrs : dict
    needs : tuple of bool
        Per input: is its gradient wanted?
    graph : Graph or None
        The graph that the call is part of; None if it was computed.
    """

    @property
    def name(self) -> str:
        """The name of the operation in its graph; elsewhere the op type."""
        return self.op.name if self.graph is None else self.graph.name_of(self.node)

    @property
    def type(self) -> str:
        """The op type."""
        return self.op.name

    @property
    def inputs(self) -> tuple:
        """The saved inputs."""
        return read_by_rule(self, self.input_refs, "input")

    @property
    def outputs(self) -> tuple:
        """The saved outputs."""
        return read_by_rule(self, self.output_refs, "output")

    @property
    def input_specs(self) -> tuple:
        """The shapes and dtypes of the inputs."""
        return tuple([spec_of_ref(ref) for ref in self.input_refs])

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


class NotSaved:
    """Stand-in for an input or output that is not saved. A rule that uses it raises an error."""

    def __init__(self, op, what, i):
        self.place = op, what, i

    def __getattr__(self, name):
        if name.startswith("__"):  # copy and pickle ask for these before there is a place
            raise AttributeError(name)
        refuse_use(self)


not_saved = cache(NotSaved)  # an op makes one in each backward pass, and few rules look at it


def refuse_use(used, *_, **__):
    op, what, i = used.place
    raise InvalidGradientError(
        f"a derivative rule of op {op!r} reads its {what} {i}, which is not saved for it: add {i} "
        f"to saved_{what}s where the op is declared")


for method in set(dir(Tensor)).difference(dir(object)):  # Python looks for operators in the class
    if method.startswith("__") and callable(getattr(Tensor, method)):
        setattr(NotSaved, method, refuse_use)


cdef tuple read_by_rule(OpCall call, tuple refs, str what):
    """Return the values of refs as a rule sees them; using one that was not saved raises."""
    cdef tuple found = PyTuple_New(len(refs))
    cdef Py_ssize_t i
    for i, ref in enumerate(refs):
        x = restored(ref, call.plain) if type(ref) is Value else (
            not_saved(call.op.op_type.name, what, i))
        Py_INCREF(x)
        PyTuple_SET_ITEM(found, i, x)
    return found


cdef int backward_by_rule(Op op, BackwardCall* call, rule, uint64_t kept_outputs, graph,
                          int node) except -1:
    """Run the backward pass of an entry by a function of an OpCall."""
    cdef int n_in = call.n_inputs, n_out = call.n_outputs
    cdef int n_still = n_in - 1 if op.moving == 1 and op.linear else 0
    cdef OpCall view = OpCall.__new__(OpCall)
    view.op = op
    view.graph = graph
    view.node = node
    view.plain = not op.rule_takes_tensors and not observed()
    view.output_specs = objects_of(call.refs, n_out)
    view.input_refs = objects_of(call.refs + n_out, n_in)
    view.output_refs = outputs_kept(call, kept_outputs)
    view.attrs = <object>call.refs[call.n_refs - 1]
    view.needs = needs_of(call)
    seeds = gradients_of_outputs(call, view.plain)
    if view.plain and any_is_large(call.refs, n_out + n_in):
        gradients = with_kept_memory(rule, (view, *seeds), NO_ATTRS)
    elif n_out == 1:
        gradients = rule(view, seeds[0])
    else:
        gradients = rule(view, *seeds)
    if gradients is NotImplemented:
        gradients = (gradients,) * (n_in - n_still)
    elif not isinstance(gradients, (tuple, list)):
        gradients = (gradients,)
    if n_still:
        gradients = (*gradients, *[None] * n_still)
    for gradient in gradients:
        if gradient is NotImplemented:
            gradients = conform.deferred(view, gradients, seeds)
            break
    return give_all(op, call, gradients)


cdef tuple objects_of(void** refs, int n):
    cdef tuple objects = PyTuple_New(n)
    cdef int i
    for i in range(n):
        Py_INCREF(<object>refs[i])
        PyTuple_SET_ITEM(objects, i, <object>refs[i])
    return objects


cdef tuple outputs_kept(BackwardCall* call, uint64_t kept):
    """Return the values of the outputs that an entry keeps, None for the others."""
    cdef list outputs = [None] * call.n_outputs
    cdef int i, place = call.n_outputs + call.n_inputs
    for i in range(call.n_outputs if kept else 0):
        if is_among(kept, i):
            outputs[i] = <object>call.refs[place]
            place += 1
    return tuple(outputs)


cdef tuple needs_of(BackwardCall* call):
    cdef tuple needs = PyTuple_New(call.n_inputs)
    cdef int i
    for i in range(call.n_inputs):
        needed = True if call.needed[i] else False
        Py_INCREF(needed)
        PyTuple_SET_ITEM(needs, i, needed)
    return needs


cdef bint any_is_large(void** refs, int n) except -1:
    cdef int i
    for i in range(n):
        if spec_of_ref(<object>refs[i]).nbytes >= WORTH_LENDING:
            return True
    return False
