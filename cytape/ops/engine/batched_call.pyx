"""Calls of ops with a batch axis, and the rule that moves axes in attributes."""

cimport cython

from cytape.ops.calls.operands import axis_in_batch


@cython.final
@cython.freelist(4)
cdef class BatchedCall:
    """A call of an op in which some inputs have a batch axis, the first.

    Attributes
    ----------
    op : Op
    attrs : dict
    inputs : list of Tensor or ndarray
    mapped : list of bool
        Per input whether it has the batch axis.
    input_specs, output_specs : list of Spec
        Without the batch axis.
    extent : int or None
        Length of the batch axis; None if it is not known.
    """

    def __init__(self, op, dict attrs, list inputs, list mapped, input_specs, output_specs, extent):
        self.op = self.function = op
        self.attrs = attrs
        self.inputs = inputs
        self.mapped = mapped
        self.input_specs = input_specs
        self.output_specs = output_specs
        self.extent = extent

    def again(self, list inputs not None, **attrs):
        """Call the op with other inputs and attributes."""
        if attrs:
            attrs = {**self.attrs, **attrs}
        return self.function(*inputs, **(attrs or self.attrs))


@cython.final
cdef class Along:
    """Make the rule of an op whose attributes name axes of its first input: they move by one."""

    cdef tuple names

    def __init__(self, *names):
        self.names = names

    def __call__(self, BatchedCall call not None):
        cdef Py_ssize_t i
        for i in range(len(call.mapped)):
            if call.mapped[i] is not (i == 0):
                return NotImplemented
        attrs = call.attrs.copy()
        ndim = call.inputs[0].ndim
        for name in self.names:
            axis = attrs.get(name)
            attrs[name] = axis + 1 if type(axis) is int and axis >= 0 and ndim != 1 else (
                axis_in_batch(axis, ndim))
        return call.function(*call.inputs, **attrs)
