cimport cython
from cytape.graph.passes.accumulate_op cimport AccumulateOp, is_part
from cytape.ops.calls.dispatch cimport Op, adds_part
from cytape.ops.calls.node_store cimport Node
from cytape.ops.kernels.moves cimport Region
from cytape.ops.updates.update_op cimport CLEAR, UpdateOp
from cytape.tensor.values.spec cimport Spec
from libc.stdlib cimport calloc, free

from .early_sums cimport LARGE
from .rewriting cimport ABSENT, located_as, spec_at

cdef Op add, broadcast_to_op

from cytape.ops.adjoints.conform import broadcast_to_op
from cytape.ops.elementwise import add


@cython.final
cdef class Accumulation:
    def __cinit__(self, Rewriting rewriting):
        cdef SymbolicGraph source = rewriting.source
        cdef Py_ssize_t n = source.n_nodes, i
        self.rewriting, self.source = rewriting, source
        self.memory = calloc(1, (2 * n + source.n_symbols) * sizeof(int32_t) + 4 * n + 1)
        if self.memory == NULL:
            raise MemoryError()
        self.inner = <int32_t*>self.memory
        self.parts = self.inner + n
        self.uses = self.parts + n
        self.is_addition = <char*>(self.uses + source.n_symbols)
        self.continued = self.is_addition + n
        self.needed = self.continued + n
        self.has_placed = self.needed + n
        for i in range(n):
            self.inner[i] = ABSENT

    def __dealloc__(self):
        free(self.memory)

    cdef int32_t producer(self, int32_t symbol) noexcept:
        return self.rewriting.producer(symbol)

    cdef int count_uses(self) noexcept:
        cdef Node* found
        cdef int32_t node, i
        for node in range(self.source.n_nodes):
            if self.rewriting.live[node]:
                found = &self.source.nodes[node]
                for i in range(found.n_inputs):
                    self.uses[self.source.args[found.inputs + i]] += 1
        return 0

    cdef bint is_of_part(self, int32_t symbol) except -1:
        """Return whether a term is the gradient of a part that is a region of memory."""
        cdef int32_t node = self.producer(symbol)
        cdef Region region
        if self.n_places(node) != 0:
            return False
        return is_part((<dict>self.source.attrs[node])["index"],
                       spec_at(self.source, self.source.args[self.source.nodes[node].inputs]),
                       spec_at(self.source, symbol), &region)

    cdef bint is_placed(self, int32_t symbol) except -1:
        """Return whether a term is zeros with a part at an index known only at run time."""
        cdef int32_t node = self.producer(symbol)
        return self.uses[symbol] == 1 and self.n_places(node) > 0

    cdef int n_places(self, int32_t node) except -2:
        """Return the number of operands in the index at which a node adds; -1 if it does not."""
        if node == ABSENT or not adds_part(<Op>self.source.ops[node]) or (
                self.rewriting.pinned[node]):
            return -1
        return n_places_of(self.source, node)

    cdef int find_chains(self) except -1:
        """Find chains of additions: each continues one that has no other reader."""
        cdef SymbolicGraph source = self.source
        cdef int32_t node, other, i, symbol
        cdef Spec spec
        cdef const int32_t* inputs
        for node in range(source.n_nodes):
            if not self.rewriting.live[node] or <Op>source.ops[node] is not add or (
                    self.rewriting.pinned[node]):
                continue
            inputs = source.args + source.nodes[node].inputs
            spec = spec_at(source, source.nodes[node].first_output)
            if not spec.known or not spec.trainable or spec_at(source, inputs[0]) is not spec or (
                    spec_at(source, inputs[1]) is not spec):
                continue
            self.is_addition[node] = True
            self.has_placed[node] = self.is_placed(inputs[0]) or self.is_placed(inputs[1])
            for i in range(2):
                symbol = inputs[i]
                other = self.producer(symbol)
                if (self.inner[node] == ABSENT and other != ABSENT and self.is_addition[other]
                        and self.uses[symbol] == 1 and self.may_wait(spec, node, other)):
                    self.inner[node] = other
                    self.parts[node] += self.parts[other]
                else:
                    self.parts[node] += self.is_of_part(symbol) or self.is_placed(symbol)
        for node in range(source.n_nodes):
            if self.inner[node] != ABSENT and self.parts[node]:
                self.continued[self.inner[node]] = True
        return 0

    cdef bint may_wait(self, Spec spec, int32_t node, int32_t other) noexcept:
        """Return whether the terms of an addition may be kept until another one runs."""
        if self.has_placed[node] or self.has_placed[other]:
            self.has_placed[node] = True
            return True
        return spec.nbytes < LARGE

    cdef bint is_root(self, int32_t node) noexcept:
        return self.is_addition[node] and self.parts[node] > 0 and not self.continued[node]

    cdef tuple term_of(self, int32_t symbol, int32_t node):
        """Return the symbol and the index with which a term is added."""
        cdef int32_t made_by = self.producer(symbol)
        cdef int32_t inner
        cdef Region region
        if made_by == ABSENT:
            return symbol, None
        inner = self.source.args[self.source.nodes[made_by].inputs] if (
            self.source.nodes[made_by].n_inputs) else ABSENT
        if self.is_of_part(symbol):
            return inner, (<dict>self.source.attrs[made_by])["index"]
        if <Op>self.source.ops[made_by] is broadcast_to_op and (
                not self.rewriting.pinned[made_by]) and is_part(
                None, spec_at(self.source, inner), spec_at(self.source, symbol), &region):
            return inner, None
        return symbol, None

    cdef bint is_cleared(self, int32_t symbol) except -1:
        """Return whether a sum can take over the memory of a term: an array with a cleared part."""
        cdef int32_t node = self.producer(symbol)
        return node != ABSENT and self.uses[symbol] == 1 and (
            type(self.source.ops[node]) is UpdateOp
            and (<UpdateOp>self.source.ops[node]).kind == CLEAR)

    cdef list terms_of(self, int32_t node):
        cdef list terms = []
        cdef int32_t i, symbol, chain = node
        while chain != ABSENT:
            for i in range(1, -1, -1):
                symbol = self.source.args[self.source.nodes[chain].inputs + i]
                if self.inner[chain] == ABSENT or self.producer(symbol) != self.inner[chain]:
                    terms.append(symbol)
            chain = self.inner[chain]
        terms.reverse()
        for i in range(min(2, len(terms))):
            if self.is_cleared(terms[i]):  # parts are added to it, one by one
                terms.insert(0, terms.pop(i))
                return [(one, None) for one in terms]
        return [self.term_of(one, node) for one in terms]

    cdef int mark_needed(self) except -1:
        """Mark the nodes that are read if parts are added in place."""
        cdef SymbolicGraph source = self.source
        cdef int32_t node, i, symbol
        for symbol in self.rewriting.fetches:
            if self.producer(symbol) != ABSENT:
                self.needed[self.producer(symbol)] = True
        for node in range(source.n_nodes - 1, -1, -1):
            if not self.rewriting.live[node] or not (
                    self.needed[node] or self.rewriting.pinned[node]):
                continue
            self.needed[node] = True
            if self.is_root(node):
                for symbol, _ in self.terms_of(node):
                    if self.producer(symbol) != ABSENT:
                        self.needed[self.producer(symbol)] = True
                continue
            for i in range(source.nodes[node].n_inputs):
                symbol = source.args[source.nodes[node].inputs + i]
                if self.producer(symbol) != ABSENT:
                    self.needed[self.producer(symbol)] = True
        return 0

    cdef int emit_sum(self, int32_t node) except -1:
        cdef list terms = self.terms_of(node), waiting = []  # to be added in one op
        cdef int32_t symbol, total = ABSENT
        cdef int i
        for i in range(len(terms)):
            symbol, index = terms[i]
            if index is not None or not self.is_placed(symbol):
                # Elements are added to an array, in any order to a fed one, such as the sum that a
                # loop carries, so that the time of an iteration does not depend on the array's
                # size.
                if i < 2 or self.producer(symbol) == ABSENT:
                    terms.insert(0, terms.pop(i))
                break
        for symbol, index in terms:
            if index is None and self.is_placed(symbol) and (waiting or total != ABSENT):
                total = self.emit_terms(node, total, waiting)
                total = self.emit_terms(node, total, [(symbol, None)])
                waiting = []
            else:
                waiting.append((symbol, index))
        return self.rewriting.replace(node, self.emit_terms(node, total, waiting))

    cdef int32_t emit_terms(self, int32_t node, int32_t total, list terms) except -1:
        """Emit ops that add terms from left to right, to `total` if that exists; return the sum."""
        cdef SymbolicGraph target = self.rewriting.target
        cdef Spec spec = spec_at(self.source, self.source.nodes[node].first_output)
        cdef list symbols = [self.rewriting.mapping[symbol] for symbol, _ in terms]
        cdef list indices = [index for _, index in terms]
        cdef int32_t symbol
        if total != ABSENT:
            symbols.insert(0, total)
            indices.insert(0, None)
        specs = [spec_at(target, symbol) for symbol in symbols]
        # A sum of scalars that the source broadcasts does not have its shape yet.
        if any([index is not None for index in indices]) or any([x is not spec for x in specs]):
            op = AccumulateOp(spec, specs, indices)
            return self.emit_op(node, op, symbols)
        total = symbols[0]
        for symbol in symbols[1:]:
            total = self.emit_op(node, add, [total, symbol])
        return total

    cdef int32_t emit_op(self, int32_t node, Op op, list symbols) except -1:
        cdef SymbolicGraph source = self.source, target = self.rewriting.target
        cdef int32_t made = target.add(
            op, symbols, {}, (spec_at(source, source.nodes[node].first_output),))
        located_as(target, made, source, node)
        return target.nodes[made].first_output


cdef int n_places_of(SymbolicGraph graph, int32_t node) except -1:
    return graph.nodes[node].n_inputs - 1 - ("shape" not in <dict>graph.attrs[node])


cdef bint any_parts(SymbolicGraph graph) except -1:
    cdef int32_t node
    for node in range(graph.n_nodes):
        if adds_part(<Op>graph.ops[node]):
            return True
    return False


def accumulated(subgraph):
    """Add the gradients of parts of a tensor in place.

    If n parts of one array are read, its gradient is a sum of n arrays that are mostly zeros; the
    pass makes it one array to which n parts are added.
    """
    cdef Rewriting rewriting
    cdef Accumulation accumulation
    cdef int32_t node, symbol
    if not any_parts(subgraph.graph):
        return subgraph
    rewriting = Rewriting(subgraph)
    accumulation = Accumulation(rewriting)
    for symbol in rewriting.fetches:
        accumulation.uses[symbol] += 2  # fetched symbols are never continued
    accumulation.count_uses()
    accumulation.find_chains()
    accumulation.mark_needed()
    for node in range(rewriting.source.n_nodes):
        if not accumulation.needed[node] or rewriting.skip(node):
            continue
        if accumulation.is_root(node):
            accumulation.emit_sum(node)
        else:
            rewriting.copy(node)
    return rewriting.result()
