from cytape.graph.passes.fused_op cimport FusedOp
from cytape.ops.calls.dispatch cimport Op
from cytape.ops.calls.node_store cimport Node
from cytape.ops.calls.symbolic cimport SymbolicGraph
from libc.stdint cimport int32_t

from .rewriting cimport ABSENT, Rewriting

cdef Op checkpointed_call_op, identity_op

from cytape.ops.adjoints.conform import identity_op
from cytape.ops.python.checkpointed_call_op import checkpointed_call_op


cdef bint is_late(SymbolicGraph graph, int32_t node) except -1:
    return <Op>graph.ops[node] is identity_op and "late" in <dict>graph.attrs[node]


cdef int32_t shown_by(SymbolicGraph graph, int32_t symbol) except -1:
    """Return the symbol that a chain of identities and calls passes on."""
    cdef int32_t node = graph.symbols[symbol].node
    cdef Node* row = &graph.nodes[node]
    while <Op>graph.ops[node] is identity_op or <Op>graph.ops[node] is checkpointed_call_op:
        symbol = graph.args[
            row.inputs + row.n_inputs - row.n_outputs + (symbol - row.first_output)]
        node = graph.symbols[symbol].node
        row = &graph.nodes[node]
    return symbol


def splits_fused(subgraph) -> bool:
    """Return whether recomputed ops separate fused ops in an optimised subgraph."""
    cdef SymbolicGraph graph = subgraph.graph
    cdef int32_t node, symbol, i
    cdef Node* row
    for node in range(graph.n_nodes):
        if type(<object>graph.ops[node]) is not FusedOp:
            continue
        row = &graph.nodes[node]
        for i in range(row.inputs, row.inputs + row.n_inputs):
            symbol = graph.args[i]
            if is_late(graph, graph.symbols[symbol].node) and type(<object>graph.ops[
                    graph.symbols[shown_by(graph, symbol)].node]) is FusedOp:
                return True
    return False


def without_repeats(subgraph):
    """Remove recomputation: the backward pass reads the values of the forward pass.

    Readers of a late identity read its input without waiting; simplification then merges the
    recomputed ops with the originals.
    """
    cdef Rewriting rewriting = Rewriting(subgraph)
    cdef SymbolicGraph source = rewriting.source
    cdef int32_t node, shown, i
    cdef Node* row
    for node in range(source.n_nodes):
        if rewriting.skip(node):
            continue
        row = &source.nodes[node]
        if is_late(source, node):
            rewriting.controls.pop(node, None)
            rewriting.replace(node, rewriting.mapping[source.args[row.inputs]])
        elif <Op>source.ops[node] is checkpointed_call_op and node not in rewriting.controls:
            for i in range(row.n_outputs):
                shown = rewriting.mapping[
                    source.args[row.inputs + row.n_inputs - row.n_outputs + i]]
                if rewriting.mapping[row.first_output + i] == ABSENT:  # otherwise it is fed
                    rewriting.mapping[row.first_output + i] = shown
                rewriting.note(node, rewriting.target.symbols[shown].node)
        else:
            rewriting.copy(node)
    return rewriting.result()
