cimport numpy as cnp
from cytape.tensor.values.spec cimport scalar_spec, spec_of
from cytape.tensor.recording.state cimport (
    Counts, ThreadState, accumulating, building, counts, recording, this_thread)
from cytape.tensor.tensor cimport another_handle, as_ndarray, new_tensor
from cytape.tensor.values.value cimport copy_of_array, is_symbolic, new_value, symbol_of
from cytape.tensor.variable cimport Variable, follow_as, read
from libc.stdint cimport uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset

from .dispatch cimport conform, frozen_attrs
from .tangents cimport follow

import numpy as np

from cytape.ops.calls.late import upper
from cytape.ops.calls.operands import is_tensor
from cytape.tensor.making import convert_to_tensor

cnp.import_array()

cdef Counts* recorders = counts()
cdef dict NO_ATTRS = {}


cdef class SymbolicGraph(NodeStore):
    """Nodes to which op calls with symbolic operands are added.

    Subclasses define conversions of other operands.
    """

    def __cinit__(self, *_, **__):
        self.numbers = {}

    def capture(self, Tensor tensor):
        """Return this graph's tensor for a tensor of another graph or of none."""
        if is_symbolic(tensor.held):
            raise ValueError(f"{tensor!r} belongs to {tensor.graph.seen_from_outside()}")
        return self.constant(tensor)

    def seen_from_outside(self) -> str:
        """Describe this graph for errors of other graphs, which cannot use its tensors."""
        return "another graph than the one being built"

    def constant(self, tensor, name=None):
        """Return this graph's tensor for a value that never changes."""
        raise NotImplementedError

    def variable_value(self, variable):
        """Return this graph's tensor for the value that a variable will have."""
        raise NotImplementedError

    def variable_made(self, variable):
        """Note a variable that was created while this graph was being built."""

    def value_left(self, tensor, asked):
        """Note a tensor whose value becomes a constant of the graph.

        asked: whether explicitly, as by `numpy()`, not by a conversion.
        """

    def values_left(self, left):
        """Note the frozen tensors of a trace that is called here; see `FunctionGraph`."""

    def context_of_numbers(self):
        """Return the context of constants that the derivative being built adds."""
        return 0

    def begin_attempt(self):
        """Begin an attempt: nodes built from here on count only if it succeeds."""

    def end_attempt(self, succeeded):
        """End the innermost attempt, and note whether it succeeded."""

    def initial_value(self, tensor):
        """Return a tensor with a value for a tensor of this graph; itself if it has none yet."""
        return tensor

    def truncate(self, int32_t n_nodes):
        """Remove the nodes from this one on, which were built last."""
        NodeStore.truncate(self, n_nodes)
        self.numbers = {key: symbol for key, symbol in self.numbers.items()
                        if symbol < self.n_symbols}
        memset(self.recent_numbers, 0, sizeof(self.recent_numbers))

    def build(self, Op op not None, *inputs, **attrs):
        """Append a call of an op; return its outputs as tensors, packed as the op packs them."""
        return build(self, op, inputs, attrs)


# ---- calls of ops

cpdef SymbolicGraph graph_for(inputs):
    """Return the graph that a call with these operands is added to, None for an eager call.

    It is the graph being built, whatever graph the operands are from.
    """
    cdef SymbolicGraph graph = building()
    for x in inputs:
        if isinstance(x, Tensor):
            if graph is not None:
                return graph
            if is_symbolic((<Tensor>x).held):
                return (<Tensor>x).held.owner
    return None


cdef SymbolicGraph graph_of(x, y):
    """Return `graph_for` of one operand (y is None) or two."""
    cdef SymbolicGraph graph = building()
    if type(x) is Tensor and is_symbolic((<Tensor>x).held):
        return (<Tensor>x).held.owner if graph is None else graph
    if type(y) is Tensor and is_symbolic((<Tensor>y).held):
        return (<Tensor>y).held.owner if graph is None else graph
    return graph if isinstance(x, Tensor) or isinstance(y, Tensor) else None


def in_graph(SymbolicGraph graph not None, Tensor tensor not None) -> Tensor:
    """Return a graph's tensor for any tensor; recorders that track that one track it, too."""
    cdef Value value = own_value(graph, tensor)
    return new_tensor(captured(graph, tensor)) if value is None else tensor


cdef Value captured(SymbolicGraph graph, Tensor tensor):
    cdef Value value = (<Tensor>graph.capture(tensor)).held
    if recorders.entered:
        follow_as(tensor.held.id, value)
    return value


cdef Value operand(SymbolicGraph graph, x, Spec like):
    """Return the graph's value for any operand; numbers are weak beside a tensor (like)."""
    cdef Value value
    if type(x) is Tensor:
        value = own_value(graph, x)
        return captured(graph, x) if value is None else value
    if isinstance(x, Variable):
        return read(x)
    if isinstance(x, (list, tuple)) and is_tensor(x):
        return operand(graph, convert_to_tensor(x), like)
    if like is not None and isinstance(x, (int, float, complex)):
        return graph.value_at(number(graph, x, like))
    if x is None:
        raise TypeError("an operand is None, as an unknown extent of a symbolic tensor is: ask for "
                        "that with cytape.numpy.size(tensor, axis)")
    value = copy_of_array(as_ndarray(x))
    return (<Tensor>graph.constant(new_tensor(value))).held


cdef int32_t number(SymbolicGraph graph, x, Spec like) except -1:
    """Return the symbol of a Python number; equal numbers share one constant."""
    cdef Number* recent = NULL
    cdef double content
    cdef uint64_t bits = 0
    cdef Value value
    if (type(x) is float or type(x) is int) and (
            like.type_num == cnp.NPY_DOUBLE or like.type_num == cnp.NPY_FLOAT):
        content = float(x)
        memcpy(&bits, &content, sizeof(double))
        recent = &graph.recent_numbers[(bits * <uint64_t>0x9E3779B97F4A7C15) >> 60]
        if recent.bits == bits and recent.type_num == like.type_num:
            return recent.symbol
        dtype = like.dtype
        key = (bits, like.type_num)
    else:
        dtype = np.result_type(like.dtype, x)
        key = (type(x), repr(x), dtype)
    symbol = graph.numbers.get(key)
    if symbol is None:
        if recent != NULL and like.type_num == cnp.NPY_DOUBLE:
            value = new_value(scalar_spec(like) if like.known else spec_of((), dtype))
            (<double*>value.data)[0] = content
        else:
            value = copy_of_array(np.asarray(x, dtype))
        # Independent of the context of its first use.
        context = graph.context
        if context:
            context = graph.context_of_numbers() if graph.differentiating else 0
        before, graph.context = graph.context, context
        try:
            graph.append(conform.constant_op, {"value": new_tensor(value)}, NULL, 0, 1)
            symbol = graph.numbers[key] = graph.append_symbol(value.spec)
        finally:
            graph.context = before
    if recent != NULL:
        recent.bits, recent.type_num, recent.symbol = bits, like.type_num, symbol
    return symbol


cdef object build(SymbolicGraph graph, Op op, inputs, dict attrs):
    """Add a call to a graph; recorders of this thread see it."""
    cdef ThreadState thread = this_thread()
    cdef list values = []
    cdef Value value, output
    cdef Spec like = None
    cdef bint looked = False
    if thread.graph is not graph:
        before = thread.graph
        thread.graph = graph
        thread.held += 1
        recorders.symbolic += 1
        try:
            return build(graph, op, inputs, attrs)
        finally:
            thread.graph = before
            thread.release_hold()
            recorders.symbolic -= 1
    for x in inputs:
        value = own_value(graph, x)
        if value is None:
            if not looked:
                like, looked = dtype_of_tensors(inputs), True
            value = operand(graph, x, like)
        values.append(value)
    result = op.infer(values, attrs)  # of lists, too, which are refused where NumPy refuses them
    attrs = frozen_attrs(attrs) if attrs else NO_ATTRS
    if type(result) is not Spec:
        result = build_many(graph, op, values, attrs, result)
        if op.makes_views:
            op.note_views(inputs, result, attrs)
        return result
    append_values(graph, op, values, attrs, 1)
    output = graph.value_at(graph.append_symbol(result))
    tensor = new_tensor(output)
    if op.makes_views:
        op.note_views(inputs, tensor, attrs)
    if recorders.entered:
        tell(graph, op, values, [output], attrs)
    return tensor


cdef object build_many(SymbolicGraph graph, Op op, list values, dict attrs, result):
    """Add a call with any number of outputs."""
    cdef list specs = list(result)
    append_values(graph, op, values, attrs, <int32_t>len(specs))
    outputs = [graph.value_at(graph.append_symbol(spec)) for spec in specs]
    tensors = [new_tensor(output) for output in outputs]
    if recorders.entered:
        tell(graph, op, values, outputs, attrs)
    kind = type(result)
    return kind(*tensors) if hasattr(kind, "_fields") else kind(tensors)


cdef int32_t append_values(SymbolicGraph graph, Op op, list values, dict attrs,
                           int32_t n_outputs) except -1:
    cdef int32_t on_stack[32]
    cdef int32_t* row = on_stack
    cdef int32_t i, n = <int32_t>len(values)
    if n > 32:
        row = <int32_t*>malloc(n * sizeof(int32_t))
        if row == NULL:
            raise MemoryError()
    try:
        for i in range(n):
            row[i] = <int32_t>symbol_of(<Value>values[i])
        return graph.append(op, attrs, row, n, n_outputs)
    finally:
        if row != on_stack:
            free(row)


cdef Spec dtype_of_tensors(inputs):
    """Return the spec, of the tensors' common dtype, beside which numbers are weak."""
    cdef Spec like = None, spec
    for x in inputs:
        if isinstance(x, Tensor):
            spec = (<Tensor>x).held.spec
            if like is None or (spec.type_num != like.type_num and (
                    np.result_type(like.dtype, spec.dtype) != like.dtype)):
                like = spec
    return like


cdef int32_t own_symbol(SymbolicGraph graph, x) except -2:
    """Return the symbol of a value or tensor in a graph, -1 if it belongs elsewhere."""
    cdef Value value
    if type(x) is Value:
        value = x
    elif type(x) is Tensor:
        value = (<Tensor>x).held
    else:
        return -1
    if is_symbolic(value) and value.owner is graph:
        return symbol_of(value)
    return symbol_of(captured(graph, another_handle(value)))


cdef int32_t append1(SymbolicGraph graph, Op op, dict attrs, int32_t x, Spec spec) except -1:
    """Add a call of one operand whose result has a spec; return the result's symbol."""
    graph.append(op, attrs, &x, 1, 1)
    return graph.append_symbol(spec)


cdef int32_t append2(SymbolicGraph graph, Op op, int32_t x, int32_t y, Spec spec) except -1:
    """Add a call of two operands without attributes; return the result's symbol."""
    cdef int32_t[2] row
    row[0], row[1] = x, y
    graph.append(op, NO_ATTRS, row, 2, 1)
    return graph.append_symbol(spec)


cdef tuple call_of_node(SymbolicGraph graph, int32_t node):
    """Return the op and the attributes under which recorders record a node."""
    if graph.has_overrides:
        call = upper("overriding_call")(graph, node)
        if call is not None:
            return call
    return graph.ops[node], graph.attrs[node]


cdef int tell(SymbolicGraph graph, Op op, list inputs, list outputs, dict attrs) except -1:
    """Record the last node, as if it had been computed."""
    cdef Value value
    cdef bint trainable = False
    for value in outputs:
        trainable |= value.spec.trainable
    if not trainable:
        return 0
    if graph.has_overrides:
        op, attrs = call_of_node(graph, graph.n_nodes - 1)
    if recording() is not None:
        op.record_call(inputs, outputs, attrs)
    if accumulating() is not None:
        follow(op, inputs, outputs, attrs)
    return 0
