cimport cython
cimport numpy as cnp
from cytape.graph.passes.fused_op cimport (
    LOOP_STEP, NOT_FUSED, SUM_STEP, fused_kind, has_step, is_fused_type,
)
from cytape.ops.calls.dispatch cimport Op, adds_part
from cytape.ops.calls.node_store cimport Node
from cytape.tensor.values.spec cimport boolean_spec
from libc.stdlib cimport calloc, free
from libc.string cimport memset

from .early_sums cimport LARGE
from .rewriting cimport ABSENT, spec_at

cdef Op add_op, cos, sin

from cytape.ops.adjoints.conform import broadcast_to_op
from cytape.ops.elementwise import add as add_op
from cytape.ops.elementwise import cos, sin

cnp.import_array()

cdef enum:
    LEAST_RUN = 64          # elements of a run in which every operand is contiguous or uniform
    LEAST_FAST = 65         # elements from which on the faster loop of sine and cosine pays
    NEVER = 0x7fffffff


@cython.final
cdef class FusionGroups:
    def __cinit__(self, Rewriting rewriting, Py_ssize_t least):
        cdef SymbolicGraph source = rewriting.source
        cdef Py_ssize_t n = source.n_nodes, m = source.n_symbols
        cdef int32_t* words
        cdef int32_t symbol
        self.rewriting, self.source, self.least = rewriting, source, least
        self.memory = calloc(
            1, n * sizeof(PyObject*) + (10 * n + 2 * m) * sizeof(int32_t) + 5 * n + m)
        if self.memory == NULL:
            raise MemoryError()
        self.kinds = <PyObject**>self.memory
        words = <int32_t*>(self.kinds + n)
        memset(words, 0xff, (7 * n + m) * sizeof(int32_t))  # ABSENT everywhere
        self.cuts, self.parents, self.nexts = words, words + n, words + 2 * n
        self.befores, self.stages, self.limits = words + 3 * n, words + 4 * n, words + 5 * n
        self.sizes, self.users = words + 6 * n, words + 7 * n
        words += 7 * n + m
        self.firsts, self.lasts, self.breaks = words, words + n, words + 2 * n
        self.uses = words + 3 * n
        self.is_sum = <char*>(self.uses + m)
        self.fast, self.joins = self.is_sum + n, self.is_sum + 2 * n
        self.is_last, self.fetched = self.is_sum + 3 * n, self.is_sum + 4 * n
        self.escapes = self.is_sum + 5 * n
        for symbol in rewriting.fetches:
            if self.producer(symbol) != ABSENT:
                self.fetched[self.producer(symbol)] = True
                self.escapes[symbol] = True
                self.uses[symbol] += 1
        self.choose_fast()
        self.assign_stages()
        self.sink()
        self.form_groups()
        self.find_escapes()

    def __dealloc__(self):
        free(self.memory)

    cdef int32_t producer(self, int32_t symbol) noexcept:
        """Return the node that computes a symbol, ABSENT if it is fed."""
        return self.rewriting.producer(symbol)

    cdef int32_t seen_through(self, int32_t symbol) except -2:
        """Return the operand that is broadcast to a symbol, if it may be used unbroadcast."""
        cdef int32_t node = self.producer(symbol), inner
        cdef Spec spec
        if node == ABSENT or <Op>self.source.ops[node] is not broadcast_to_op:
            return symbol
        inner = self.source.args[self.source.nodes[node].inputs]
        spec = spec_at(self.source, inner)
        return inner if is_operand(spec, spec_at(self.source, symbol)) else symbol

    cdef int32_t input_of(self, int32_t node, int32_t i) except -2:
        """Return the symbol of a node's input i."""
        cdef int32_t symbol = self.source.args[self.source.nodes[node].inputs + i]
        return symbol if self.kinds[node] == NULL or self.is_sum[node] else (
            self.seen_through(symbol))

    cdef PyObject* kind_of(self, int32_t node) except? NULL:
        """Return the Spec of floats of the group that a node may belong to, NULL for none."""
        cdef Node* found = &self.source.nodes[node]
        cdef Op op = <Op>self.source.ops[node]
        cdef int kind = fused_kind(op)
        cdef int types[3]
        cdef int32_t i, symbol, other
        cdef Spec out, spec, full = None
        cdef bint all_bool = True
        if kind == NOT_FUSED or self.rewriting.pinned[node] or found.n_inputs > 3 or (
                found.n_outputs != 1):
            return NULL
        out = spec_at(self.source, found.first_output)
        if kind == SUM_STEP:
            return self.kind_of_sum(node, out)
        for i in range(found.n_inputs if op is add_op else 0):
            other = self.producer(self.source.args[found.inputs + i])
            if other != ABSENT and adds_part(<Op>self.source.ops[other]):
                return NULL  # smaller than a full pass over the operand
        if not out.known or out.size < (
                min(self.least, LEAST_FAST) if self.fast[node] else self.least):
            return NULL
        if is_fused_type(out.type_num):
            full = out
        elif out.type_num != cnp.NPY_BOOL:
            return NULL
        for i in range(found.n_inputs):
            symbol = self.source.args[found.inputs + i]
            spec = spec_at(self.source, symbol)
            types[i] = spec.type_num
            all_bool &= spec.type_num == cnp.NPY_BOOL
            if full is None and is_fused_type(spec.type_num) and spec.known and (
                    boolean_spec(spec) is out):  # it compares
                full = spec
        if full is None and all_bool:  # booleans: in the group of their operands
            for i in range(found.n_inputs):
                other = self.producer(self.source.args[found.inputs + i])
                if other != ABSENT and self.kinds[other] != NULL:
                    full = <Spec>self.kinds[other]
        if full is None or boolean_spec(full) is not boolean_spec(out):
            return NULL
        for i in range(found.n_inputs):
            if not is_operand(spec_at(self.source, self.source.args[found.inputs + i]), full):
                return NULL
        if not has_step(op, full.type_num, found.n_inputs, types, out.type_num):
            return NULL
        return <PyObject*>full

    cdef PyObject* kind_of_sum(self, int32_t node, Spec out) except? NULL:
        """Return the kind of the operand of a sum, if it is fused and summed to one number."""
        cdef int32_t symbol = self.source.args[self.source.nodes[node].inputs]
        cdef int32_t summed = self.producer(symbol)
        cdef dict attrs = <dict>self.source.attrs[node]
        if (self.source.nodes[node].n_inputs > 1 or not out.known
                or out.ndim and not (out.size == 1 and attrs.get("keepdims"))
                or summed == ABSENT or self.is_sum[summed]
                or self.kinds[summed] == NULL or attrs.get("dtype") is not None
                or "where" in attrs or "initial" in attrs
                or spec_at(self.source, symbol).type_num != out.type_num):
            return NULL
        self.is_sum[node] = True
        return self.kinds[summed]

    cdef int distance(self, int32_t node, int32_t user) noexcept:
        """Return the least difference of the stages of a node and of a reader of its output."""
        if self.kinds[node] == NULL:
            return 0
        return (self.is_sum[node] or self.kinds[node] != self.kinds[user]
                or self.cuts[user] == node)

    cdef int assign_stages(self) except -1:
        cdef SymbolicGraph source = self.source
        cdef int32_t node, other, i, stage, stateful = ABSENT
        for node in range(source.n_nodes):
            for i in range(source.nodes[node].n_inputs if self.rewriting.live[node] else 0):
                self.uses[source.args[source.nodes[node].inputs + i]] += 1
        for node in range(source.n_nodes):
            if not self.rewriting.live[node]:
                continue
            self.kinds[node] = self.kind_of(node)
            stage = 0
            for i in range(source.nodes[node].n_inputs):
                other = self.producer(self.input_of(node, i))
                if other != ABSENT:
                    stage = max(stage, self.stages[other] + self.distance(other, node))
            if (<Op>source.ops[node]).stateful:
                self.befores[node] = stateful
                if stateful != ABSENT:
                    stage = max(stage, self.stages[stateful])
                stateful = node
            if self.rewriting.pinned[node] and node in self.rewriting.controls:
                for other in self.rewriting.controls[node]:
                    stage = max(stage, self.stages[other])
            self.stages[node] = stage
            if self.kinds[node] != NULL and not self.is_sum[node]:
                self.cut(node)
        return 0

    cdef int cut(self, int32_t node) except -1:
        """Separate a node from the group of an input that would wait for a large operand.

        A group runs after all its operands are computed. Operands that are computed early and read
        only by the group would be kept longer than by separate ops.
        """
        cdef int32_t first = node, chain = ABSENT, other, symbol, i
        cdef bint waits = False
        for i in range(self.source.nodes[node].n_inputs):
            other = self.fused_input(node, i)
            if other != ABSENT and self.firsts[other] < first:
                first, chain = self.firsts[other], other
        self.lasts[node] = ABSENT
        for i in range(self.source.nodes[node].n_inputs):
            symbol = self.input_of(node, i)
            other = self.fused_input(node, i)
            if other != ABSENT:
                self.lasts[node] = max(self.lasts[node], self.lasts[other])
                waits |= other != chain and self.lasts[other] > first
                continue
            other = self.producer(symbol)
            if other != ABSENT and self.uses[symbol] == 1 and (
                    spec_at(self.source, symbol).nbytes >= LARGE):
                self.lasts[node] = max(self.lasts[node], other)
                waits |= other > first
        self.firsts[node] = first
        if chain != ABSENT and waits:
            self.cuts[node], self.firsts[node] = chain, node
            self.lasts[node] = max(self.lasts[node], chain)
            self.stages[node] = max(self.stages[node], self.stages[chain] + 1)
        return 0

    cdef int32_t fused_input(self, int32_t node, int32_t i) except -2:
        """Return the node of the same group that computes an input, or ABSENT."""
        cdef int32_t other = self.producer(self.input_of(node, i))
        if other == ABSENT or self.kinds[other] != self.kinds[node] or self.is_sum[other] or (
                self.stages[other] != self.stages[node]):
            return ABSENT
        return other

    cdef int choose_fast(self) except -1:
        cdef int32_t node
        for node in range(self.source.n_nodes):
            self.fast[node] = self.rewriting.live[node] and may_be_fast(self.source, node)
        return 0

    cdef int sink(self) except -1:
        """Move nodes that are not read before a later stage to the group there that reads them."""
        cdef SymbolicGraph source = self.source
        cdef int32_t node, other, i, limit
        for node in range(source.n_nodes):
            self.limits[node] = NEVER
        for node in range(source.n_nodes - 1, -1, -1):
            if not self.rewriting.live[node]:
                continue
            if self.kinds[node] != NULL and not self.is_sum[node] and not self.fetched[node] and (
                    self.joins[node] and self.limits[node] != NEVER):
                self.stages[node] = self.limits[node]
            for i in range(source.nodes[node].n_inputs):
                other = self.producer(self.input_of(node, i))
                if other == ABSENT:
                    continue
                limit = self.stages[node] - self.distance(other, node)
                if limit < self.limits[other]:
                    self.limits[other] = limit
                    self.joins[other] = False
                if limit == self.limits[other] and not self.distance(other, node):
                    self.joins[other] = True
        return 0

    cdef int32_t root(self, int32_t node) noexcept:
        while self.parents[node] != node:
            self.parents[node] = self.parents[self.parents[node]]
            node = self.parents[node]
        return node

    cdef int join(self, int32_t node, int32_t other) noexcept:
        if other == ABSENT or self.kinds[node] != self.kinds[other] or (
                self.stages[node] != self.stages[other]):
            return 0
        node, other = self.root(node), self.root(other)
        if node != other:
            self.parents[max(node, other)] = min(node, other)
        return 0

    cdef int count_breaks(self) except -1:
        """Count, up to each node, the ops between groups that compute large arrays."""
        cdef int32_t node, i, n_breaks = 0
        cdef Node* found
        for node in range(self.source.n_nodes):
            found = &self.source.nodes[node]
            for i in range(found.n_outputs if (
                    self.rewriting.live[node] and self.kinds[node] == NULL) else 0):
                n_breaks += spec_at(self.source, found.first_output + i).nbytes >= LARGE
            self.breaks[node] = n_breaks
        return 0

    cdef bint may_share(self, int32_t node, int32_t other) noexcept:
        """Return whether readers of one operand may form a group: no large result waits."""
        return other != ABSENT and self.kinds[node] != NULL and (
            (<Spec>self.kinds[node]).nbytes < LARGE or self.breaks[node] == self.breaks[other])

    cdef int form_groups(self) except -1:
        """Group nodes that are connected or read the same operand; single nodes are not fused."""
        cdef SymbolicGraph source = self.source
        cdef int32_t node, other, symbol, i, root
        self.count_breaks()
        for node in range(source.n_nodes):
            self.parents[node] = node
            self.sizes[node] = 0
            if self.kinds[node] == NULL:
                continue
            for i in range(source.nodes[node].n_inputs):
                symbol = self.input_of(node, i)
                other = self.producer(symbol)
                if other != ABSENT and not self.is_sum[other]:
                    self.join(node, other)
                if spec_at(source, symbol).size > 1:
                    if self.may_share(node, self.users[symbol]):
                        self.join(node, self.users[symbol])
                    self.users[symbol] = node
        for node in range(source.n_nodes):
            if self.kinds[node] != NULL:
                self.sizes[self.root(node)] += 1
        for node in range(source.n_nodes):
            root = self.root(node)
            if self.kinds[node] == NULL:
                continue
            if self.sizes[root] == 1 and not self.fast[node]:
                self.kinds[node] = NULL
            elif root == node:
                self.limits[root] = node
            else:  # `limits` is not needed any more: it stores the last member of a group
                self.nexts[self.limits[root]] = node
                self.limits[root] = node
        for node in range(source.n_nodes):
            if self.kinds[node] != NULL and self.root(node) == node:
                self.is_last[self.limits[node]] = True
        return 0

    cdef int find_escapes(self) except -1:
        cdef SymbolicGraph source = self.source
        cdef int32_t node, other, symbol, i
        for node in range(source.n_nodes):
            if not self.rewriting.live[node]:
                continue
            for i in range(source.nodes[node].n_inputs):
                symbol = self.input_of(node, i)
                other = self.producer(symbol)
                if other != ABSENT and self.kinds[other] != NULL and (
                        self.kinds[node] == NULL or self.root(node) != self.root(other)):
                    self.escapes[symbol] = True
        return 0


cdef bint is_operand(Spec spec, Spec full) noexcept:
    """Return whether a fused op of one shape accepts a broadcast operand without a copy.

    The last axes, all broadcast or all not, must form a run of sufficient length.
    """
    cdef int axis, lead = full.ndim - spec.ndim
    cdef bint stands, first = True, stood = False
    cdef Py_ssize_t run = 1
    if not spec.known or lead < 0:
        return False
    if spec.size == full.size:
        return lead == 0 or spec.type_num != cnp.NPY_BOOL
    if spec.type_num == cnp.NPY_BOOL:
        return False
    if spec.size == 1:
        return True
    for axis in range(full.ndim - 1, -1, -1):
        if full.dims[axis] == 1:
            continue
        stands = axis < lead or spec.dims[axis - lead] == 1
        if not first and stands != stood:
            break
        first, stood = False, stands
        run *= full.dims[axis]
    return run >= LEAST_RUN


cdef bint may_be_fast(SymbolicGraph graph, int32_t node) except -1:
    """Return whether a node is a sine or cosine that only derivatives read, as in programs."""
    return graph.nodes[node].is_derivative and (
        <Op>graph.ops[node] is sin or <Op>graph.ops[node] is cos)


cdef bint any_large(SymbolicGraph graph, Py_ssize_t least) except -1:
    """Return whether there is an elementwise op of at least so many elements."""
    cdef Spec spec
    cdef int32_t node
    for node in range(graph.n_nodes):
        if graph.nodes[node].n_outputs == 1:
            spec = spec_at(graph, graph.nodes[node].first_output)
            if spec.size >= least and fused_kind(<Op>graph.ops[node]) == LOOP_STEP:
                return True
            if spec.size >= LEAST_FAST and may_be_fast(graph, node):
                return True
    return False
