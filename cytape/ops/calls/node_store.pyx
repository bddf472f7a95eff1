cimport numpy as cnp
from cpython.ref cimport Py_INCREF, Py_XDECREF, Py_XINCREF
from cytape.tensor.recording.state cimport this_thread
from cytape.tensor.tensor cimport new_tensor
from cytape.tensor.values.value cimport is_symbolic, new_id, symbol_of, symbolic_value
from libc.stdint cimport int64_t
from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memcpy, memset

import weakref

import numpy as np

from cytape.tensor.values.user_warnings import NUMPY, PACKAGE

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

cdef str package = PACKAGE
cdef str numpy_package = NUMPY

cdef enum:
    KNOWN_FILES = 64  # a power of two

cdef struct KnownFile:
    PyObject* file    # its name, owned
    bint ours

cdef KnownFile[KNOWN_FILES] known_files
memset(known_files, 0, sizeof(known_files))


cdef class NodeStore:
    """Storage of a graph: ops and their connections, without values.

    Users build a `cytape.Graph`, a subclass. Nodes (op calls) and symbols (their outputs) are
    referred to by position.

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
        Settings under which nodes are built, by the number that `context_of` returns.
    """

    def __cinit__(self, *_, **__):
        self.ops = []
        self.attrs = []
        self.stateful = []
        self.contexts = [None]

    def __dealloc__(self):
        cdef int32_t i
        for i in range(self.n_nodes):
            Py_XDECREF(self.nodes[i].code)
        for i in range(self.n_symbols):
            Py_XDECREF(self.symbols[i].spec)
        free(self.nodes)
        free(self.symbols)
        free(self.args)

    cdef Py_ssize_t size_of_nodes(self) noexcept:
        return (self.nodes_capacity * <Py_ssize_t>sizeof(Node)
                + self.symbols_capacity * <Py_ssize_t>sizeof(Symbol)
                + self.args_capacity * <Py_ssize_t>sizeof(int32_t)
                + 2 * self.n_nodes * <Py_ssize_t>sizeof(PyObject*))

    # ---- reading

    def control_inputs_of(self, int32_t node) -> list:
        """Return the nodes that must run before a node, besides those of its inputs."""
        return []

    def describe(self, int32_t symbol) -> str:
        """Return a description of a symbol for messages."""
        spec = self.spec_of(symbol)
        return f"{self.ops[self.node_of(symbol)].name}:{symbol} ({spec.dtype}, shape {spec.shape})"

    def inputs_of(self, int32_t node) -> list:
        """Return the positions of a node's inputs."""
        cdef Node* found = &self.nodes[self.valid_node(node)]
        return [self.args[found.inputs + i] for i in range(found.n_inputs)]

    def outputs_of(self, int32_t node):
        """Return the range of the positions of a node's outputs."""
        cdef Node* found = &self.nodes[self.valid_node(node)]
        return range(found.first_output, found.first_output + found.n_outputs)

    def node_of(self, int32_t symbol) -> int:
        """Return the node whose output a symbol is."""
        return self.symbols[self.valid_symbol(symbol)].node

    def spec_of(self, int32_t symbol):
        """Return the spec of a symbol."""
        return <object>self.symbols[self.valid_symbol(symbol)].spec

    def context_of(self, int32_t node) -> int:
        """Return the number of the context that a node was built under."""
        return self.nodes[self.valid_node(node)].context

    def tensor_at(self, int32_t symbol):
        """Return a tensor for a symbol."""
        return new_tensor(self.value_at(self.valid_symbol(symbol)))

    def symbol_of(self, Tensor tensor not None) -> int:
        """Return the position of a tensor of this graph."""
        if not is_symbolic(tensor.held) or tensor.held.owner is not self:
            raise ValueError(f"{tensor!r} does not belong to this graph")
        return symbol_of(tensor.held)

    def location_of(self, int32_t node):
        """Return the file name, line and function where a node was built, None if unknown."""
        cdef Node* found = &self.nodes[self.valid_node(node)]
        if found.code == NULL:
            return None
        code = <object>found.code
        line = code.co_firstlineno
        for start, end, number in code.co_lines():
            if start <= found.instruction < end and number is not None:
                line = number
        return code.co_filename, line, code.co_name

    def output_position(self, int32_t symbol) -> int:
        """Return the position of a symbol among its node's outputs."""
        return symbol - self.nodes[self.symbols[self.valid_symbol(symbol)].node].first_output

    def checked_node(self, int32_t node) -> int:
        """Return a node, or raise if there is none in this position."""
        return self.valid_node(node)

    cdef int32_t valid_node(self, int32_t node) except -1:
        if not 0 <= node < self.n_nodes:
            raise IndexError(f"there is no node {node} in a graph of {self.n_nodes}")
        return node

    def checked_symbol(self, int32_t symbol) -> int:
        """Return a symbol, or raise if there is none in this position."""
        return self.valid_symbol(symbol)

    cdef int32_t valid_symbol(self, int32_t symbol) except -1:
        if not 0 <= symbol < self.n_symbols:
            raise IndexError(f"there is no symbol {symbol} in a graph of {self.n_symbols}")
        return symbol

    # ---- building

    @property
    def present_context(self) -> int:
        """Return the number of the present context."""
        this_thread()  # updates the state for the running task
        return self.context

    def unrecorded_context(self) -> int:
        """Return the number of a context for unrecorded nodes."""
        return self.present_context

    def enter_context(self, int32_t context) -> int:
        """Build under one of `contexts` from now on; return the number of the one before."""
        before, self.context = self.context, context
        return before

    def finalize(self):
        """Prevent further additions.

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
        """Append a node with given outputs, without inferring them.

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
            row[i] = self.valid_symbol(inputs[i])
        if n <= 64:
            node = self.append(op, attrs, row, n, len(specs))
        else:
            many = np.ascontiguousarray(inputs, np.int32)
            if many.min() < 0 or many.max() >= self.n_symbols:
                raise IndexError("an input is not a symbol of this graph")
            node = self.append(op, attrs, <const int32_t*>cnp.PyArray_DATA(many), n, len(specs))
        for spec in specs:
            self.append_symbol(spec)
        return node

    cdef Tensor new_source(self, Op op, dict attrs, Spec spec):
        self.append(op, attrs, NULL, 0, 1)
        return new_tensor(self.value_at(self.append_symbol(spec)))

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
        if self.code is None:
            find_line(&node.code, &node.instruction)
        else:
            Py_INCREF(self.code)
            node.code, node.instruction = <PyObject*>self.code, self.instruction
        for i in range(n_inputs):
            self.args[self.n_args + i] = inputs[i]
        self.n_args += n_inputs
        self.n_nodes += 1
        if op.stateful:
            self.stateful.append(self.n_nodes - 1)
            self.note_effects(op, attrs)
        return self.n_nodes - 1

    def note_effects(self, Op op, dict attrs):
        """Note a stateful op that is being added, before it is recorded."""

    cdef object begin_backward(self):
        cdef object before = self.code
        cdef PyObject* code
        self.differentiating += 1
        if before is None:
            find_line(&code, &self.instruction)
            if code != NULL:
                self.code = <object>code
                Py_XDECREF(code)
        return before

    cdef void end_backward(self, before) noexcept:
        self.differentiating -= 1
        self.code = before

    cdef int32_t append_symbol(self, Spec spec) except -1:
        cdef Symbol* symbol = &self.symbols[self.n_symbols]
        Py_INCREF(spec)
        symbol.spec = <PyObject*>spec
        symbol.id = new_id()
        symbol.node = self.n_nodes - 1
        self.n_symbols += 1
        self.own_shape(self.n_symbols - 1, spec)
        return self.n_symbols - 1

    cdef int own_shape(self, int32_t symbol, Spec spec) except -1:
        """Give an unknown shape without an owner the symbol as its owner."""
        if not spec.known and spec.unknown.tensor is None:
            spec.unknown.tensor = Whose(self, symbol)
        return 0

    def about_to_change(self, Op op):
        """Raise an error if an op is added to a finalized graph."""
        raise RuntimeError(
            f"the graph is finalized: op {op.op_type.name!r} cannot be added to it any more")

    cdef int32_t copy_node(self, NodeStore source, int32_t node,
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

    # ---- changing

    def set_input(self, int32_t node, int32_t position, int32_t symbol):
        """Change an input of a node. The caller must ensure that the new one comes before it."""
        cdef Node* found = &self.nodes[self.valid_node(node)]
        if not 0 <= position < found.n_inputs:
            raise IndexError(f"there is no input {position} of {found.n_inputs}")
        self.args[found.inputs + position] = self.valid_symbol(symbol)

    def set_context(self, int32_t node, int32_t context):
        """Set the context of a node."""
        if not 0 <= context < len(self.contexts):
            raise IndexError(f"there is no context {context} of {len(self.contexts)}")
        self.nodes[self.valid_node(node)].context = context

    def set_spec(self, int32_t symbol, Spec spec not None):
        """Set the spec of a symbol; existing tensors of it do not change."""
        cdef PyObject* before = self.symbols[self.valid_symbol(symbol)].spec
        Py_INCREF(spec)
        self.symbols[symbol].spec = <PyObject*>spec
        Py_XDECREF(before)
        self.has_new_specs = True
        self.own_shape(symbol, spec)

    def inferred(self, int32_t node, inputs, dict specs not None) -> list:
        """Return the specs of a node's outputs if it read these symbols, and they had these specs.

        Parameters
        ----------
        node : int
        inputs : sequence of int
        specs : dict of int to Spec
            New specs of symbols.

        Returns
        -------
        list of Spec
        """
        cdef int32_t symbol
        cdef Op op = <Op>self.ops[self.valid_node(node)]
        values = [symbolic_value(specs.get(symbol, self.spec_of(symbol)),
                                 self.symbols[symbol].id, self, symbol) for symbol in inputs]
        result = op.infer(values, self.attrs[node])
        return [result] if type(result) is Spec else list(result)

    def reorder(self, int32_t first, order):
        """Put nodes in another order; their symbols keep their positions.

        Parameters
        ----------
        first : int
        order : sequence of int
            The nodes from `first` on, as many as there are numbers, in the order wanted.
        """
        cdef int32_t count = len(order), i, node, symbol
        cdef dict places = {node: first + i for i, node in enumerate(order)}
        cdef Node* moved
        if count == 0:
            return
        if len(places) != count or min(order) < first or max(order) >= first + count or (
                first + count > self.n_nodes):
            raise ValueError(f"expected the nodes from {first} on, each once, got {list(order)}")
        moved = <Node*>malloc(count * sizeof(Node))
        if moved == NULL:
            raise MemoryError()
        for i in range(count):
            node = order[i]
            moved[i] = self.nodes[node]
            for symbol in range(moved[i].first_output, moved[i].first_output + moved[i].n_outputs):
                self.symbols[symbol].node = first + i
        memcpy(&self.nodes[first], moved, count * sizeof(Node))
        free(moved)
        self.ops[first:first + count] = [self.ops[node] for node in order]
        self.attrs[first:first + count] = [self.attrs[node] for node in order]
        self.stateful[:] = sorted([places.get(node, node) for node in self.stateful])

    def truncate(self, int32_t n_nodes):
        """Remove the nodes from this one on, which were built last."""
        cdef int32_t i, n_symbols
        if n_nodes == self.n_nodes:
            return
        n_symbols = self.nodes[self.valid_node(n_nodes)].first_output
        for i in range(n_symbols, self.n_symbols):
            Py_XDECREF(self.symbols[i].spec)
        for i in range(n_nodes, self.n_nodes):
            Py_XDECREF(self.nodes[i].code)
        self.n_args = self.nodes[n_nodes].inputs
        self.n_nodes, self.n_symbols = n_nodes, n_symbols
        del self.ops[n_nodes:], self.attrs[n_nodes:]
        self.stateful[:] = [i for i in self.stateful if i < n_nodes]

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
    """Owner of an unknown shape: a symbol, with a weak reference to its graph."""

    def __init__(self, graph, symbol):
        self.graph = weakref.ref(graph)
        self.symbol = symbol

    def __call__(self):
        return self.graph().tensor_at(self.symbol)


cdef void* grown(void* memory, int64_t count, int64_t more, int32_t* capacity,
                 size_t item) except? NULL:
    """Return memory for more items; the old block stays valid if there is no memory."""
    cdef int64_t wanted = max(2 * count, count + more, 64)
    if wanted > 0x7fffffff:
        raise OverflowError("a graph has at most 2**31 - 1 ops, tensors and inputs of ops")
    memory = realloc(memory, wanted * item)
    if memory == NULL:
        raise MemoryError()
    capacity[0] = <int32_t>wanted
    return memory


cdef void find_line(PyObject** place, int32_t* instruction) noexcept:
    """Find the line of the user's program: in the innermost frame outside cytape and NumPy."""
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
    """Return whether a file belongs to this package or to NumPy."""
    cdef size_t place = (<size_t>file >> 4) & (KNOWN_FILES - 1)
    if known_files[place].file != file:
        Py_XDECREF(known_files[place].file)
        Py_XINCREF(file)
        known_files[place].file = file
        known_files[place].ours = PyUnicode_Tailmatch(
            file, <PyObject*>package, 0, PY_SSIZE_T_MAX, -1) == 1 or PyUnicode_Tailmatch(
            file, <PyObject*>numpy_package, 0, PY_SSIZE_T_MAX, -1) == 1
    return known_files[place].ours
