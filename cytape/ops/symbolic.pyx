cimport numpy as cnp
from cpython.ref cimport Py_INCREF, Py_XDECREF, Py_XINCREF
from cytape.tensor.spec cimport scalar_spec, spec_of
from cytape.tensor.state cimport (
    Counts, ThreadState, accumulating, building, counts, recording, this_thread)
from cytape.tensor.tensor cimport another_handle, as_ndarray, new_tensor
from cytape.tensor.value cimport (
    copy_of_array, is_symbolic, new_id, new_value, symbol_of, symbolic_value)
from cytape.tensor.variable cimport Variable, follow_as, read
from libc.stdint cimport int64_t, uint64_t
from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memcpy, memset

from .dispatch cimport frozen
from .forward cimport follow

import os
import weakref

import numpy as np

from cytape.ops.dispatch import conform

cnp.import_array()

cdef extern from "Python.h":
    ctypedef struct PyFrameObject:
        pass
    ctypedef struct PyCodeObject:
        PyObject* co_filename
    PyFrameObject* PyEval_GetFrame() noexcept               # borrowed
    PyFrameObject* PyFrame_GetBack(PyFrameObject* frame) noexcept  # new
    PyCodeObject* PyFrame_GetCode(PyFrameObject* frame) noexcept   # new
    int PyFrame_GetLasti(PyFrameObject* frame) noexcept
    Py_ssize_t PyUnicode_Tailmatch(PyObject* text, PyObject* part, Py_ssize_t start, Py_ssize_t end,
                                   int direction) noexcept  # of exact strings
    Py_ssize_t PY_SSIZE_T_MAX

cdef Counts* recorders = counts()
cdef dict NO_ATTRS = {}
cdef str PACKAGE = os.path.dirname(os.path.dirname(__file__)) + os.sep

cdef enum:
    KNOWN_FILES = 64  # a power of two

cdef struct KnownFile:
    PyObject* file    # its name, owned
    bint ours

cdef KnownFile[KNOWN_FILES] known_files
memset(known_files, 0, sizeof(known_files))


cdef class SymbolicGraph:
    """Ops and how they are connected, without a value anywhere.

    `cytape.Graph` is what users build; this is how it is stored. Nodes (ops that were called) and
    symbols (their outputs) are named by position.

    Attributes
    ----------
    n_nodes, n_symbols : int
    ops : list of Op
        By node.
    attrs : list of dict
        By node: the op's keyword arguments.
    stateful : list of int
        The nodes whose ops are stateful, in order.
    contexts : list
        What nodes are built under, by the number that `context_of` returns.
    """

    def __cinit__(self, *_, **__):
        self.ops = []
        self.attrs = []
        self.stateful = []
        self.contexts = [None]
        self.numbers = {}

    def __dealloc__(self):
        cdef int32_t i
        for i in range(self.n_nodes):
            Py_XDECREF(self.nodes[i].code)
        for i in range(self.n_symbols):
            Py_XDECREF(self.symbols[i].spec)
        free(self.nodes)
        free(self.symbols)
        free(self.args)

    # ---- what subclasses decide

    def capture(self, Tensor tensor):
        """Return this graph's tensor for one that is not its own."""
        if is_symbolic(tensor.held):
            raise ValueError(f"{tensor!r} belongs to another graph than the one being built")
        return self.constant(tensor)

    def constant(self, tensor, name=None):
        """Return this graph's tensor for a value that never changes."""
        raise NotImplementedError

    def variable_value(self, variable):
        """Return this graph's tensor for what a variable will hold."""
        raise NotImplementedError

    def variable_made(self, variable):
        """Take note of a variable that was made while this graph was being built."""

    def initial_value(self, tensor):
        """Return a tensor with a value for one of this graph, itself if it has none yet."""
        return tensor

    def control_inputs_of(self, int32_t node) -> list:
        """Return the nodes that must run before a node, besides those of its inputs."""
        return []

    def describe(self, int32_t symbol) -> str:
        """Say which tensor a symbol is, for messages."""
        spec = self.spec_of(symbol)
        return f"{self.ops[self.node_of(symbol)].name}:{symbol} ({spec.dtype}, shape {spec.shape})"

    # ---- reading

    def inputs_of(self, int32_t node) -> list:
        """Return the positions of a node's inputs."""
        cdef Node* found = &self.nodes[self.checked_node(node)]
        return [self.args[found.inputs + i] for i in range(found.n_inputs)]

    def outputs_of(self, int32_t node):
        """Return the range of the positions of a node's outputs."""
        cdef Node* found = &self.nodes[self.checked_node(node)]
        return range(found.first_output, found.first_output + found.n_outputs)

    def node_of(self, int32_t symbol) -> int:
        """Return the node whose output a symbol is."""
        return self.symbols[self.checked_symbol(symbol)].node

    def spec_of(self, int32_t symbol):
        """Return the spec of a symbol."""
        return <object>self.symbols[self.checked_symbol(symbol)].spec

    def context_of(self, int32_t node) -> int:
        """Return the number of the context that a node was built under."""
        return self.nodes[self.checked_node(node)].context

    def tensor_at(self, int32_t symbol):
        """Return a tensor for a symbol."""
        return new_tensor(self.value_at(self.checked_symbol(symbol)))

    def symbol_of(self, Tensor tensor not None) -> int:
        """Return the position of a tensor of this graph."""
        if not is_symbolic(tensor.held) or tensor.held.owner is not self:
            raise ValueError(f"{tensor!r} does not belong to this graph")
        return symbol_of(tensor.held)

    def location_of(self, int32_t node):
        """Return the file name, line and function where a node was built, None if unknown."""
        cdef Node* found = &self.nodes[self.checked_node(node)]
        if found.code == NULL:
            return None
        code = <object>found.code
        line = code.co_firstlineno
        for start, end, number in code.co_lines():
            if start <= found.instruction < end and number is not None:
                line = number
        return code.co_filename, line, code.co_name

    def output_position(self, int32_t symbol) -> int:
        """Return which of its node's outputs a symbol is."""
        return symbol - self.nodes[self.symbols[self.checked_symbol(symbol)].node].first_output

    def checked_node(self, int32_t node) -> int:
        """Return a node, or raise if there is none in this position."""
        if not 0 <= node < self.n_nodes:
            raise IndexError(f"there is no node {node} in a graph of {self.n_nodes}")
        return node

    def checked_symbol(self, int32_t symbol) -> int:
        """Return a symbol, or raise if there is none in this position."""
        if not 0 <= symbol < self.n_symbols:
            raise IndexError(f"there is no symbol {symbol} in a graph of {self.n_symbols}")
        return symbol

    # ---- building

    @property
    def present_context(self) -> int:
        """The number of the context that ops are built under now."""
        this_thread()  # which looks whether another task is at work
        return self.context

    def unrecorded_context(self) -> int:
        """Return the number of a context for what nobody is to record."""
        return self.present_context

    def enter_context(self, int32_t context) -> int:
        """Build under one of `contexts` from now on; return the number of the one before."""
        before, self.context = self.context, context
        return before

    def finalize(self):
        """Let nothing be added any more.

        Examples
        --------
        >>> import cytape
        >>> graph = cytape.Graph()
        >>> graph.finalize()
        >>> graph.finalized
        True
        """
        self.finalized = True

    def add(self, Op op not None, inputs, dict attrs not None, specs):
        """Append a node as it is told, without asking what the op makes of its inputs.

        Parameters
        ----------
        op : Op
        inputs : sequence of int
            Symbols.
        attrs : dict
        specs : sequence of Spec
            Of the outputs.

        Returns
        -------
        int
            The node.
        """
        cdef int32_t row[64]
        cdef int32_t i, n = len(inputs), node
        for i in range(min(n, 64)):
            row[i] = self.checked_symbol(inputs[i])
        if n <= 64:
            node = self.append(op, attrs, row, n, len(specs))
        else:
            many = np.ascontiguousarray(inputs, np.int32)
            if many.min() < 0 or many.max() >= self.n_symbols:
                raise IndexError("an input is no symbol of this graph")
            node = self.append(op, attrs, <const int32_t*>cnp.PyArray_DATA(many), n, len(specs))
        for spec in specs:
            self.append_symbol(spec)
        return node

    def add_source(self, Op op not None, dict attrs not None, Spec spec not None):
        """Append a node without inputs, as it is told; return its output as a tensor."""
        self.append(op, attrs, NULL, 0, 1)
        return new_tensor(self.value_at(self.append_symbol(spec)))

    def build(self, Op op not None, *inputs, **attrs):
        """Append a call of an op; return its outputs as tensors, packed as the op packs them."""
        return build(self, op, inputs, attrs)

    cdef int32_t append(self, Op op, dict attrs, const int32_t* inputs, int32_t n_inputs,
                        int32_t n_outputs) except -1:
        cdef Node* node
        cdef int32_t i
        if self.finalized:
            self.about_to_change(op)
        self.reserve(n_inputs, n_outputs)
        self.ops.append(op)
        self.attrs.append(attrs)
        node = &self.nodes[self.n_nodes]
        node.inputs = self.n_args
        node.n_inputs = n_inputs
        node.first_output = self.n_symbols
        node.n_outputs = n_outputs
        node.context = self.context
        node.is_derivative = self.differentiating > 0
        if self.code == NULL:
            locate(&node.code, &node.instruction)
        else:
            Py_XINCREF(self.code)
            node.code, node.instruction = self.code, self.instruction
        for i in range(n_inputs):
            self.args[self.n_args + i] = inputs[i]
        self.n_args += n_inputs
        if op.stateful:
            self.stateful.append(self.n_nodes)
        self.n_nodes += 1
        return self.n_nodes - 1

    cdef void begin_backward(self) noexcept:
        self.differentiating += 1
        if self.code == NULL:
            locate(&self.code, &self.instruction)

    cdef void end_backward(self) noexcept:
        self.differentiating -= 1
        Py_XDECREF(self.code)
        self.code = NULL

    cdef int32_t append_symbol(self, Spec spec) except -1:
        cdef Symbol* symbol = &self.symbols[self.n_symbols]
        Py_INCREF(spec)
        symbol.spec = <PyObject*>spec
        symbol.id = new_id()
        symbol.node = self.n_nodes - 1
        self.n_symbols += 1
        if not spec.known and spec.unknown.tensor is None:
            spec.unknown.tensor = Whose(self, self.n_symbols - 1)
        return self.n_symbols - 1

    def about_to_change(self, Op op):
        """Refuse an op that is to be added to a graph that is finalized."""
        raise RuntimeError(
            f"the graph is finalized: op {op.op_type.name!r} cannot be added to it any more")

    cdef int32_t copy_node(self, SymbolicGraph source, int32_t node,
                           const int32_t* mapping) except -1:
        cdef Node* copy
        cdef Symbol* symbol
        cdef int32_t i, n_inputs = source.nodes[node].n_inputs
        cdef int32_t n_outputs = source.nodes[node].n_outputs
        self.reserve(n_inputs, n_outputs)
        self.ops.append(source.ops[node])
        self.attrs.append(source.attrs[node])
        copy = &self.nodes[self.n_nodes]
        copy[0] = source.nodes[node]
        Py_XINCREF(copy.code)
        for i in range(n_inputs):
            self.args[self.n_args + i] = mapping[source.args[copy.inputs + i]]
        for i in range(n_outputs):
            symbol = &self.symbols[self.n_symbols + i]
            symbol.spec = source.symbols[copy.first_output + i].spec
            Py_XINCREF(symbol.spec)
            symbol.id = new_id()
            symbol.node = self.n_nodes
        copy.inputs = self.n_args
        copy.first_output = self.n_symbols
        self.n_args += n_inputs
        self.n_symbols += n_outputs
        if (<Op>source.ops[node]).stateful:
            self.stateful.append(self.n_nodes)
        self.n_nodes += 1
        return self.n_nodes - 1

    cdef int reserve(self, int32_t n_inputs, int32_t n_outputs) except -1:
        """Make room for one more node."""
        if self.n_nodes == self.nodes_capacity:
            self.nodes = <Node*>grown(self.nodes, self.n_nodes, 1, &self.nodes_capacity,
                                      sizeof(Node))
        if self.n_args + n_inputs > self.args_capacity:
            self.args = <int32_t*>grown(self.args, self.n_args, n_inputs, &self.args_capacity,
                                        sizeof(int32_t))
        if self.n_symbols + n_outputs > self.symbols_capacity:
            self.symbols = <Symbol*>grown(self.symbols, self.n_symbols, n_outputs,
                                          &self.symbols_capacity, sizeof(Symbol))
        return 0

    cdef Value value_at(self, int32_t symbol):
        return symbolic_value(<Spec>self.symbols[symbol].spec, self.symbols[symbol].id, self,
                              symbol)


class Whose:
    """Whose shape an unknown one is; refers to the graph weakly."""

    def __init__(self, graph, symbol):
        self.graph = weakref.ref(graph)
        self.symbol = symbol

    def __call__(self):
        return self.graph().tensor_at(self.symbol)


cdef void* grown(void* memory, int64_t count, int64_t more, int32_t* capacity,
                 size_t item) except? NULL:
    """Memory for more items; what there is stays as it is if there is none."""
    cdef int64_t wanted = max(2 * count, count + more, 64)
    if wanted > 0x7fffffff:
        raise OverflowError("a graph has at most 2**31 - 1 ops, tensors and inputs of ops")
    memory = realloc(memory, wanted * item)
    if memory == NULL:
        raise MemoryError()
    capacity[0] = <int32_t>wanted
    return memory


cdef void locate(PyObject** place, int32_t* instruction) noexcept:
    """Find out where the user's program is: in the innermost frame that is not ours."""
    cdef PyFrameObject* frame = PyEval_GetFrame()
    cdef PyFrameObject* back
    cdef PyCodeObject* code
    cdef bint borrowed = True
    place[0] = NULL
    while frame != NULL:
        code = PyFrame_GetCode(frame)
        if not is_ours(code.co_filename):
            place[0] = <PyObject*>code
            instruction[0] = PyFrame_GetLasti(frame)
            break
        Py_XDECREF(<PyObject*>code)
        back = PyFrame_GetBack(frame)
        if not borrowed:
            Py_XDECREF(<PyObject*>frame)
        frame = back
        borrowed = False
    if not borrowed:
        Py_XDECREF(<PyObject*>frame)


cdef bint is_ours(PyObject* file) noexcept:
    """Whether a file is one of this package."""
    cdef size_t place = (<size_t>file >> 4) & (KNOWN_FILES - 1)
    if known_files[place].file != file:
        Py_XDECREF(known_files[place].file)
        Py_XINCREF(file)
        known_files[place].file = file
        known_files[place].ours = PyUnicode_Tailmatch(
            file, <PyObject*>PACKAGE, 0, PY_SSIZE_T_MAX, -1) == 1
    return known_files[place].ours


# ---- calls of ops

cdef SymbolicGraph graph_for(inputs):
    cdef SymbolicGraph graph = building()
    for x in inputs:
        if isinstance(x, Tensor):
            if graph is not None:
                return graph
            if is_symbolic((<Tensor>x).held):
                return (<Tensor>x).held.owner
    return None


cdef SymbolicGraph graph_of(x, y):
    """The same for one operand (y None) or two."""
    cdef SymbolicGraph graph = building()
    if type(x) is Tensor and is_symbolic((<Tensor>x).held):
        return (<Tensor>x).held.owner if graph is None else graph
    if type(y) is Tensor and is_symbolic((<Tensor>y).held):
        return (<Tensor>y).held.owner if graph is None else graph
    return graph if isinstance(x, Tensor) or isinstance(y, Tensor) else None


def in_graph(SymbolicGraph graph not None, Tensor tensor not None) -> Tensor:
    """Return a graph's tensor for any tensor; whoever follows that one follows it, too."""
    cdef Value value = own_value(graph, tensor)
    return new_tensor(captured(graph, tensor)) if value is None else tensor


cdef Value captured(SymbolicGraph graph, Tensor tensor):
    cdef Value value = (<Tensor>graph.capture(tensor)).held
    if recorders.entered:
        follow_as(tensor.held.id, value)
    return value


cdef Value operand(SymbolicGraph graph, x, Spec like):
    """The graph's value for any operand; numbers are weak beside a tensor (like)."""
    cdef Value value
    if type(x) is Tensor:
        value = own_value(graph, x)
        return captured(graph, x) if value is None else value
    if isinstance(x, Variable):
        return read(x)
    if like is not None and isinstance(x, (int, float, complex)):
        return graph.value_at(number(graph, x, like))
    if x is None:
        raise TypeError("an operand is None, as an unknown extent of a symbolic tensor is: ask for "
                        "that with cytape.numpy.size(tensor, axis)")
    value = copy_of_array(as_ndarray(x))
    return (<Tensor>graph.constant(new_tensor(value))).held


cdef int32_t number(SymbolicGraph graph, x, Spec like) except -1:
    """The symbol of a Python number as a constant; each is there only once."""
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
        before, graph.context = graph.context, 0  # shared by all, wherever it occurs first
        try:
            graph.append(conform["constant_op"], {"value": new_tensor(value)}, NULL, 0, 1)
            symbol = graph.numbers[key] = graph.append_symbol(value.spec)
        finally:
            graph.context = before
    if recent != NULL:
        recent.bits, recent.type_num, recent.symbol = bits, like.type_num, symbol
    return symbol


cdef object build(SymbolicGraph graph, Op op, inputs, dict attrs):
    """Add a call to a graph; whoever records sees it."""
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
    if attrs:
        for name, attr in attrs.items():
            kind = type(attr)
            if kind is list or kind is np.ndarray:
                attrs = {name: frozen(attr) for name, attr in attrs.items()}
                break
    else:
        attrs = NO_ATTRS
    for x in inputs:
        value = own_value(graph, x)
        if value is None:
            if not looked:
                like, looked = dtype_of_tensors(inputs), True
            value = operand(graph, x, like)
        values.append(value)
    result = op.infer(values, attrs)
    if type(result) is not Spec:
        return build_many(graph, op, values, attrs, result)
    append_values(graph, op, values, attrs, 1)
    output = graph.value_at(graph.append_symbol(result))
    tensor = new_tensor(output)
    if recorders.entered:
        tell(op, values, [output], attrs)
    return tensor


cdef object build_many(SymbolicGraph graph, Op op, list values, dict attrs, result):
    """The same for a call that has not just one output."""
    cdef list specs = list(result)
    append_values(graph, op, values, attrs, <int32_t>len(specs))
    outputs = [graph.value_at(graph.append_symbol(spec)) for spec in specs]
    tensors = [new_tensor(output) for output in outputs]
    if recorders.entered:
        tell(op, values, outputs, attrs)
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
    """The spec of a tensor beside which numbers are weak: of the dtype that the tensors make."""
    cdef Spec like = None, spec
    for x in inputs:
        if isinstance(x, Tensor):
            spec = (<Tensor>x).held.spec
            if like is None or (spec.type_num != like.type_num and (
                    np.result_type(like.dtype, spec.dtype) != like.dtype)):
                like = spec
    return like


cdef int32_t own_symbol(SymbolicGraph graph, x) except -2:
    """The symbol of a value or tensor in a graph, -1 if it does not belong there."""
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
    """The same for two operands, without attributes."""
    cdef int32_t[2] row
    row[0], row[1] = x, y
    graph.append(op, NO_ATTRS, row, 2, 1)
    return graph.append_symbol(spec)


cdef int tell(Op op, list inputs, list outputs, dict attrs) except -1:
    """Tell recorders of a call, as if it had been computed."""
    cdef Value value
    cdef bint trainable = False
    for value in outputs:
        trainable |= value.spec.trainable
    if not trainable:
        return 0
    if recording() is not None:
        op.record_call(inputs, outputs, attrs)
    if accumulating() is not None:
        follow(op, inputs, outputs, attrs)
    return 0
