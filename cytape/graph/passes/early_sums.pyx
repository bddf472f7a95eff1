# A sum of n large arrays at the end keeps all n in memory; adding each one as soon as it is
# computed keeps two.

from cpython.mem cimport PyMem_Calloc, PyMem_Free
from cytape.ops.calls.dispatch cimport Op
from cytape.ops.calls.node_store cimport Node
from cytape.ops.calls.symbolic cimport SymbolicGraph
from cytape.tensor.values.spec cimport Spec
from libc.stdint cimport int32_t
from numpy cimport NPY_FLOAT16

from .rewriting cimport ABSENT, Rewriting, located_as, spec_at

cdef Op add_n_op, add_op

from cytape.ops.adjoints.identity_groups import add_n_op
from cytape.ops.elementwise import add as add_op


cdef bint has_large(SymbolicGraph graph) noexcept:
    cdef int32_t symbol
    for symbol in range(graph.n_symbols):
        if (<Spec>graph.symbols[symbol].spec).nbytes >= LARGE:
            return True
    return False


cdef bint is_large_sum(SymbolicGraph graph, int32_t node, Op op) except -1:
    cdef Spec spec
    if <Op>graph.ops[node] is not op:
        return False
    spec = spec_at(graph, graph.nodes[node].first_output)
    return spec.nbytes >= LARGE and spec.type_num != NPY_FLOAT16  # AddN rounds these once


cdef bint any_large_sum(SymbolicGraph graph, Op op) except -1:
    cdef int32_t node
    for node in range(graph.n_nodes):
        if is_large_sum(graph, node, op):
            return True
    return False


cdef object in_pairs(subgraph):
    """Replace large sums of many terms by sums of two, in order."""
    cdef Rewriting rewriting = Rewriting(subgraph)
    cdef SymbolicGraph source = rewriting.source
    cdef int32_t node, symbol, total, made, i
    for node in range(source.n_nodes):
        if rewriting.skip(node):
            continue
        if not is_large_sum(source, node, add_n_op) or rewriting.pinned[node] or (
                not is_of_one_spec(source, node)):
            rewriting.copy(node)
            continue
        total = rewriting.mapping[source.args[source.nodes[node].inputs]]
        for i in range(1, source.nodes[node].n_inputs):
            symbol = rewriting.mapping[source.args[source.nodes[node].inputs + i]]
            made = rewriting.target.add(
                add_op, [total, symbol], {}, (spec_at(source, source.nodes[node].first_output),))
            located_as(rewriting.target, made, source, node)
            total = rewriting.target.nodes[made].first_output
        rewriting.replace(node, total)
    return rewriting.result()


cdef bint is_of_one_spec(SymbolicGraph graph, int32_t node) except -1:
    cdef int32_t i
    for i in range(graph.nodes[node].n_inputs):
        if spec_at(graph, graph.args[graph.nodes[node].inputs + i]) is not (
                spec_at(graph, graph.nodes[node].first_output)):
            return False
    return True


def with_sums_early(subgraph):
    """Move large sums of two behind their second operand, if the operands have no other reader.

    Large sums of many terms are replaced by sums of two first, with the same passes over memory.
    Results are the same to the bit.
    """
    cdef SymbolicGraph source = subgraph.graph
    cdef Rewriting rewriting
    cdef Node* found
    cdef int32_t node, symbol, i
    cdef int32_t* uses     # per symbol
    cdef int32_t* readers  # per symbol: the last node that reads it
    if not has_large(source):
        return subgraph
    if any_large_sum(source, add_n_op):
        subgraph = in_pairs(subgraph)
        source = subgraph.graph
    if not any_large_sum(source, add_op):
        return subgraph
    rewriting = Rewriting(subgraph)
    uses = <int32_t*>PyMem_Calloc(2 * source.n_symbols + 1, sizeof(int32_t))
    if uses == NULL:
        raise MemoryError()
    readers = uses + source.n_symbols
    try:
        for symbol in rewriting.fetches:
            uses[symbol] += 1
        for node in range(source.n_nodes):
            found = &source.nodes[node]
            for i in range(found.inputs, found.inputs + (
                    found.n_inputs if rewriting.live[node] else 0)):
                uses[source.args[i]] += 1
                readers[source.args[i]] = node
        for node in range(source.n_nodes):
            if not rewriting.skip(node) and not is_done(rewriting, node):
                copy_with_sums(rewriting, node, uses, readers)
    finally:
        PyMem_Free(uses)
    return rewriting.result()


cdef bint is_done(Rewriting rewriting, int32_t node) noexcept:
    return rewriting.successors[node] != ABSENT


cdef int copy_with_sums(Rewriting rewriting, int32_t node, const int32_t* uses,
                        const int32_t* readers) except -1:
    """Copy a node, then each large sum whose last missing operand has just been copied."""
    cdef int32_t symbol, i
    rewriting.copy(node)
    for i in range(rewriting.source.nodes[node].n_outputs):
        symbol = rewriting.source.nodes[node].first_output + i
        while uses[symbol] == 1 and can_run(rewriting, readers[symbol], uses):
            rewriting.copy(readers[symbol])
            symbol = rewriting.source.nodes[readers[symbol]].first_output
    return 0


cdef bint can_run(Rewriting rewriting, int32_t node, const int32_t* uses) except -1:
    cdef SymbolicGraph source = rewriting.source
    cdef int32_t symbol, i
    if not is_large_sum(source, node, add_op) or rewriting.pinned[node] or is_done(rewriting, node):
        return False
    for i in range(2):
        symbol = source.args[source.nodes[node].inputs + i]
        if uses[symbol] != 1 or rewriting.mapping[symbol] == ABSENT:
            return False
    return rewriting.mapping[source.nodes[node].first_output] == ABSENT
