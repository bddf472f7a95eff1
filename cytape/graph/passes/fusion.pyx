cimport cython
from cytape.graph.passes.fused_op cimport FusedOp
from cytape.ops.calls.dispatch cimport Op
from cytape.ops.calls.node_store cimport Node
from cytape.tensor.values.spec cimport Spec
from libc.stdlib cimport calloc, free
from libc.string cimport memset

from .fusion_groups cimport any_large, broadcast_to_op
from .rewriting cimport ABSENT, located_as, spec_at


@cython.final
cdef class Fusion:
    def __cinit__(self, FusionGroups groups):
        cdef SymbolicGraph source = groups.source
        cdef Py_ssize_t n = source.n_nodes, m = source.n_symbols, controls = 0
        self.groups, self.rewriting, self.source = groups, groups.rewriting, source
        self.ops = {}
        for before in self.rewriting.controls.values():
            controls += len(before)
        # The stack gets every node once per edge, and once by itself.
        self.memory = calloc(
            1, (2 * m + 6 * n + source.n_args + controls) * sizeof(int32_t) + 2 * n)
        if self.memory == NULL:
            raise MemoryError()
        self.numbers = <int32_t*>self.memory
        self.number_groups = self.numbers + m
        memset(self.number_groups, 0xff, m * sizeof(int32_t))  # ABSENT everywhere
        self.order, self.pending = self.numbers + 2 * m, self.numbers + 2 * m + n
        self.stack = self.pending + 3 * n
        self.emitted = <char*>(self.stack + 2 * n + source.n_args + controls)
        self.placed = self.emitted + n

    def __dealloc__(self):
        free(self.memory)

    cdef int emit_all(self) except -1:
        cdef FusionGroups groups = self.groups
        cdef int32_t node
        for node in range(self.source.n_nodes):
            if not self.rewriting.live[node] or (
                    groups.kinds[node] != NULL and not groups.is_last[node]):
                continue
            if <Op>self.source.ops[node] is broadcast_to_op and (
                    not self.rewriting.pinned[node] and not groups.fetched[node]):
                continue  # emitted on first use
            self.emit(node)
        return 0

    cdef int emit(self, int32_t node) except -1:
        """Emit a node or its group, after its producers."""
        cdef FusionGroups groups = self.groups
        cdef int32_t top = 0, member
        self.stack[0] = groups.root(node)
        while top >= 0:
            node = self.stack[top]
            if self.emitted[node] == 2:
                top -= 1
            elif self.emitted[node] == 1:
                if groups.kinds[node] != NULL:
                    self.emit_group(node)
                elif not self.rewriting.skip(node):
                    self.rewriting.copy(node)
                self.emitted[node] = 2
                top -= 1
            else:
                self.emitted[node] = 1
                member = node
                while member != ABSENT:
                    top = self.demand(member, top)
                    member = groups.nexts[member]
        return 0

    cdef int32_t demand(self, int32_t node, int32_t top) except -1:
        """Push the producers of a node on the stack; return the new top."""
        cdef FusionGroups groups = self.groups
        cdef int32_t i, other
        for i in range(self.source.nodes[node].n_inputs):
            top = self.push(groups.producer(groups.input_of(node, i)), top)
        top = self.push(groups.befores[node], top)
        if self.rewriting.pinned[node] and node in self.rewriting.controls:
            for other in self.rewriting.controls[node]:
                top = self.push(other, top)
        return top

    cdef int32_t push(self, int32_t node, int32_t top) noexcept:
        cdef FusionGroups groups = self.groups
        if node != ABSENT:
            node = groups.root(node)
            if self.emitted[node] == 0:
                top += 1
                self.stack[top] = node
        return top

    cdef int32_t put_in_order(self, int32_t group) except -1:
        """Order the members of a group: each before its first use, so that few values live at a
        time; return how many there are."""
        cdef FusionGroups groups = self.groups
        cdef int32_t node = group, member, other, i, top, n = 0
        while node != ABSENT:
            top = -1
            if groups.escapes[self.source.nodes[node].first_output] or groups.is_sum[node]:
                top = 0
                self.pending[0] = node
            while top >= 0:
                member = self.pending[top]
                if self.placed[member]:
                    if self.placed[member] == 1:
                        self.order[n] = member
                        n += 1
                    self.placed[member] = 2
                    top -= 1
                    continue
                self.placed[member] = 1
                for i in range(self.source.nodes[member].n_inputs - 1, -1, -1):
                    other = groups.producer(groups.input_of(member, i))
                    if other != ABSENT and groups.kinds[other] != NULL and (
                            not self.placed[other] and groups.root(other) == group):
                        top += 1
                        self.pending[top] = other
            node = groups.nexts[node]
        return n

    cdef int emit_group(self, int32_t group) except -1:
        cdef FusionGroups groups = self.groups
        cdef SymbolicGraph source = self.source
        cdef Node* found
        cdef FusedOp op
        cdef int32_t node, symbol, i, k, n_calls = self.put_in_order(group)
        cdef list operands = [], calls = [], results = [], rows = []
        for k in range(n_calls):
            node = self.order[k]
            found = &source.nodes[node]
            for i in range(found.n_inputs):
                symbol = groups.input_of(node, i)
                if self.number_groups[symbol] != group:
                    self.number_groups[symbol] = group
                    self.numbers[symbol] = len(operands)
                    operands.append(symbol)
            self.number_groups[found.first_output] = group
            self.numbers[found.first_output] = -1 - k  # operands go first
        for k in range(n_calls):
            node = self.order[k]
            found = &source.nodes[node]
            inputs = tuple([self.number(groups.input_of(node, i), len(operands))
                            for i in range(found.n_inputs)])
            calls.append((source.ops[node], source.attrs[node], inputs, bool(groups.fast[node])))
            rows.append((source.ops[node], inputs, groups.fast[node],
                         groups.is_sum[node] and spec_at(source, found.first_output)))
            if groups.escapes[found.first_output] or groups.is_sum[node]:
                results.append(found.first_output)
        specs = [spec_at(source, symbol) for symbol in operands]
        numbers = [self.number(symbol, len(operands)) for symbol in results]
        key = <object>groups.kinds[group], tuple(specs), tuple(rows), tuple(numbers)
        op = self.ops.get(key)
        if op is None:
            op = self.ops[key] = FusedOp(<Spec>groups.kinds[group], specs, calls, numbers)
        return self.add(group, op, operands, results)

    cdef int32_t number(self, int32_t symbol, int32_t n_operands) noexcept:
        cdef int32_t number = self.numbers[symbol]
        return number if number >= 0 else n_operands - 1 - number

    cdef int add(self, int32_t group, FusedOp op, list operands, list results) except -1:
        cdef FusionGroups groups = self.groups
        cdef Rewriting rewriting = self.rewriting
        cdef SymbolicGraph target = rewriting.target
        cdef Node* node
        cdef int32_t i, symbol, member = group
        cdef int32_t made = target.add(
            op, [rewriting.mapping[symbol] for symbol in operands], {}, op.result_specs)
        node = &target.nodes[made]
        located_as(target, made, self.source, group)
        for i, symbol in enumerate(results):
            rewriting.mapping[symbol] = node.first_output + i
        while member != ABSENT:
            rewriting.note(member, made)
            member = groups.nexts[member]
        return 0


def fused(subgraph, Py_ssize_t least=4096):
    """Fuse groups of elementwise ops to one op each, with one pass over memory.

    A group's ops compute floats of one dtype and shape, or booleans by comparisons; a sum over all
    elements may end it.

    Parameters
    ----------
    subgraph : Subgraph
    least : int, optional
        Elements; ops on fewer, which stay in the cache anyway, are quicker one by one.
    """
    cdef Rewriting rewriting
    cdef Fusion fusion
    if not any_large(subgraph.graph, least):
        return subgraph
    rewriting = Rewriting(subgraph)
    fusion = Fusion(FusionGroups(rewriting, least))
    fusion.emit_all()
    return rewriting.result()
