from cpython.ref cimport Py_DECREF, Py_INCREF, Py_XDECREF, Py_XINCREF, PyObject
from cytape.core.interrupts cimport OP_EFFORT, effort_so_far, spend
from cytape.ops.calls.dispatch cimport Op
from cytape.ops.calls.node_store cimport Node
from cytape.ops.calls.symbolic cimport SymbolicGraph
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memset

from cytape.graph.model.graph import placeholder_op
from cytape.graph.model.subgraph import Subgraph
from cytape.ops.calls.node_store import Whose
from cytape.ops.creation import constant_op


cdef class RewrittenGraph(SymbolicGraph):
    """A graph that a pass made from another one.

    Nodes keep the line that built them and their contexts, which have the same numbers as in the
    source.
    """

    def __cinit__(self, *_, **__):
        self.control_inputs = {}

    def control_inputs_of(self, int32_t node) -> list:
        return self.control_inputs.get(node, [])

    def describe(self, int32_t symbol) -> str:
        """Describe the tensor of the original graph that a symbol corresponds to, for messages.

        Passes keep no record of it: it is one of the same op, built by the same line.
        """
        cdef int32_t node = self.node_of(symbol), other
        cdef int32_t output = symbol - self.nodes[node].first_output
        if self.built_at is None:
            self.built_at = {}
            for other in range(self.root.n_nodes):
                self.built_at.setdefault(where_built(self.root, other), []).append(other)
        candidates = self.built_at.get(where_built(self, node), ())
        if not candidates:
            return SymbolicGraph.describe(self, symbol)
        text = " or ".join([self.root.describe(self.root.nodes[other].first_output + output)
                            for other in candidates[:3]])
        return f"{text} or {len(candidates) - 3} others" if len(candidates) > 3 else text

    def constant(self, tensor, name=None):
        return self.build(constant_op, value=tensor)


cdef tuple where_built(SymbolicGraph graph, int32_t node):
    cdef Node* row = &graph.nodes[node]
    return graph.ops[node], <size_t>row.code, row.instruction, row.context


cdef class Rewriting:
    def __cinit__(self, subgraph, specs=None, bint waits=True):
        """Find the live nodes, and make a target with the feeds, of these specs if given.

        If nodes wait for their control inputs, those of live nodes are live, too.
        """
        self.controls = {}
        self.source = subgraph.graph
        self.feeds, self.fetches, self.keep = subgraph.feeds, subgraph.fetches, subgraph.keep
        cdef SymbolicGraph source = self.source
        cdef int32_t symbol
        self.target = RewrittenGraph()
        self.target.contexts = source.contexts
        self.target.root = (
            (<RewrittenGraph>source).root if type(source) is RewrittenGraph else source)
        self.mapping = <int32_t*>malloc(max(source.n_symbols, 1) * sizeof(int32_t))
        self.successors = <int32_t*>malloc(max(source.n_nodes, 1) * sizeof(int32_t))
        self.live = <char*>calloc(max(source.n_nodes, 1), 1)
        self.pinned = <char*>calloc(max(source.n_nodes, 1), 1)
        if not (self.mapping and self.successors and self.live and self.pinned):
            raise MemoryError()
        memset(self.mapping, 0xff, source.n_symbols * sizeof(int32_t))  # ABSENT everywhere
        memset(self.successors, 0xff, source.n_nodes * sizeof(int32_t))
        for i, symbol in enumerate(self.feeds):
            source.valid_symbol(symbol)
            if self.mapping[symbol] == ABSENT:
                self.mapping[symbol] = fed_symbol(
                    self, symbol, spec_at(source, symbol) if specs is None else specs[i])
        self.n_fed = self.target.n_symbols
        self.mark(waits)

    def __dealloc__(self):
        free(self.mapping)
        free(self.successors)
        free(self.live)
        free(self.pinned)

    cdef int32_t producer(self, int32_t symbol) noexcept:
        cdef int32_t mapped = self.mapping[symbol]
        return ABSENT if mapped != ABSENT and mapped < self.n_fed else (
            self.source.symbols[symbol].node)

    cdef int mark(self, bint waits) except -1:
        """Mark the nodes that fetches, kept nodes and control inputs need; feeds need none."""
        cdef SymbolicGraph source = self.source
        cdef int32_t symbol, node, other, i
        for symbol in self.fetches:
            source.valid_symbol(symbol)
            if self.mapping[symbol] == ABSENT:
                self.live[source.symbols[symbol].node] = True
        for node in self.keep:
            source.valid_node(node)
            self.live[node] = self.pinned[node] = True
        for node in range(source.n_nodes - 1, -1, -1):
            if not self.live[node]:
                continue
            for i in range(source.nodes[node].n_inputs):
                symbol = source.args[source.nodes[node].inputs + i]
                if self.mapping[symbol] == ABSENT:
                    self.live[source.symbols[symbol].node] = True
            if not (waits and source.has_control_inputs):
                continue
            before = source.control_inputs_of(node)
            if before:
                self.controls[node] = before
                self.pinned[node] = True
                for other in before:
                    self.live[other] = self.pinned[other] = True
        return 0

    cdef bint skip(self, int32_t node) except -1:
        """Return whether a node need not run: it is not live, or all its outputs are fed."""
        cdef int32_t i, symbol = ABSENT
        spend(effort_so_far(), OP_EFFORT)
        if not self.live[node]:
            return True
        if (<Op>self.source.ops[node]).stateful or self.source.nodes[node].n_outputs == 0:
            return False
        for i in range(self.source.nodes[node].n_outputs):
            symbol = self.mapping[self.source.nodes[node].first_output + i]
            if symbol == ABSENT:
                return False
        self.note(node, self.target.symbols[symbol].node)  # all outputs are fed
        return True

    cdef int32_t copy(self, int32_t node) except -1:
        cdef int32_t first = self.source.nodes[node].first_output, i
        cdef int32_t copied = self.target.copy_node(self.source, node, self.mapping)
        cdef int32_t first_copied = self.target.nodes[copied].first_output
        for i in range(self.source.nodes[node].n_outputs):
            if self.mapping[first + i] == ABSENT:  # else it is fed
                self.mapping[first + i] = first_copied + i
        self.note(node, copied)
        return copied

    cdef int replace(self, int32_t node, int32_t symbol) except -1:
        self.mapping[self.source.nodes[node].first_output] = symbol
        return self.note(node, self.target.symbols[symbol].node)

    cdef int note(self, int32_t node, int32_t successor) except -1:
        cdef int32_t other
        self.successors[node] = successor
        if self.pinned[node] and node in self.controls:
            self.target.has_control_inputs = True
            self.target.control_inputs[successor] = [
                self.successors[other] for other in self.controls[node]]
        return 0

    cdef object result(self):
        cdef int32_t symbol, node
        return Subgraph(
            self.target, tuple([self.mapping[symbol] for symbol in self.feeds]),
            tuple([self.mapping[symbol] for symbol in self.fetches]),
            tuple([self.successors[node] for node in self.keep]))


cdef int32_t fed_symbol(Rewriting rewriting, int32_t symbol, Spec spec) except -1:
    """Return a symbol of the target for a fed one: a placeholder, whatever its op in the source."""
    cdef SymbolicGraph source = rewriting.source
    cdef RewrittenGraph target = rewriting.target
    cdef int32_t node = source.symbols[symbol].node
    if source.ops[node] is placeholder_op:
        node = target.copy_node(source, node, rewriting.mapping)
        set_spec(target, target.nodes[node].first_output, spec)
        return target.nodes[node].first_output
    node = target.append(placeholder_op, {"shape": spec.shape, "dtype": spec.dtype}, NULL, 0, 1)
    return target.append_symbol(spec)


cdef void located_as(SymbolicGraph graph, int32_t node, SymbolicGraph source,
                     int32_t other) noexcept:
    cdef PyObject* before = graph.nodes[node].code
    graph.nodes[node].code = source.nodes[other].code
    graph.nodes[node].instruction = source.nodes[other].instruction
    Py_XINCREF(graph.nodes[node].code)
    Py_XDECREF(before)


cdef int set_spec(SymbolicGraph graph, int32_t symbol, Spec spec) except -1:
    cdef PyObject* before = graph.symbols[symbol].spec
    Py_INCREF(spec)
    graph.symbols[symbol].spec = <PyObject*>spec
    Py_DECREF(<object>before)
    if not spec.known and spec.shape is not None and spec.shape.tensor is None:
        spec.shape.tensor = Whose(graph, symbol)
    return 0


def without_dead_code(subgraph, waits=True):
    """Keep feeds, and the nodes that fetches, kept nodes and, if `waits`, control inputs need."""
    cdef Rewriting rewriting = Rewriting(subgraph, None, waits)
    cdef int32_t node
    for node in range(rewriting.source.n_nodes):
        if not rewriting.skip(node):
            rewriting.copy(node)
    return rewriting.result()
