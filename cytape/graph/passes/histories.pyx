from cytape.core.memory cimport release, resize
from cytape.ops.calls.dispatch cimport Lowering, Op
from cytape.ops.calls.node_store cimport Node

from .rewriting cimport Rewriting, located_as, spec_at


def with_histories_merged(subgraph):
    """Merge a loop or branch with its history, the one that keeps residuals for the gradient."""
    cdef SymbolicGraph source = subgraph.graph
    cdef Rewriting rewriting
    cdef int32_t node
    cdef int lowering
    cdef dict loops = {}       # history -> the loop or branch
    cdef dict branches = {}    # predicate and bodies -> the first node that calls these
    cdef dict first_of = {}
    for node in range(source.n_nodes):
        lowering = (<Op>source.ops[node]).lowering
        if lowering != Lowering.BRANCH and lowering != Lowering.LOOP:
            continue
        if is_history(source, node):
            loops[node] = source.symbols[source.args[source.nodes[node].inputs]].node
        elif "branches" in source.attrs[node] and not (<Op>source.ops[node]).stateful:
            called = source.attrs[node]["branches"]
            operands = operands_of_branches(source, node)
            branches.setdefault((called, operands), node)
            branch = branches.get((tuple([body.history_of for body in called]), operands))
            if branch is not None:
                loops[node] = branch
    if not loops:
        return subgraph
    rewriting = Rewriting(subgraph)
    chains = {}                # first loop -> later ones
    for node, loop in loops.items():
        if not (may_merge(rewriting, node) and may_merge(rewriting, loop)):
            continue
        first = first_of.get(loop, loop)
        chain = chains.setdefault(first, [first])
        last = chain[len(chain) - 1]
        stored = source.attrs[node].get("snapshots")
        if last == loop or stored is not None and stored == source.attrs[last].get("snapshots"):
            chain.append(node)
            first_of[node] = first
    for node in range(source.n_nodes):
        if rewriting.skip(node) or node in first_of:
            continue
        if node in chains:
            merge(rewriting, chains[node])
        else:
            rewriting.copy(node)
    return rewriting.result()


cdef bint may_merge(Rewriting rewriting, int32_t node) noexcept:
    """Return whether a node is live, has no control dependents, and no output is fed."""
    cdef Node* row = &rewriting.source.nodes[node]
    cdef int32_t i
    for i in range(row.n_outputs):
        if rewriting.mapping[row.first_output + i] >= 0:
            return False
    return rewriting.live[node] and not rewriting.pinned[node]


cdef bint is_history(SymbolicGraph graph, int32_t node) except -1:
    """Return whether a node is a loop with the iterations and the results of another loop.

    It has another body, or the same one and also stores states.
    """
    cdef dict attrs = graph.attrs[node], others
    cdef Node* row = &graph.nodes[node]
    cdef Node* other
    cdef int32_t i, n_same, loop
    body = attrs.get("body")
    if body is None or (<Op>graph.ops[node]).stateful:
        return False
    stores = attrs.get("snapshots") is not None
    of_body = body if stores else body.history_of
    if of_body is None:
        return False
    loop = graph.symbols[graph.args[row.inputs]].node
    others, other = graph.attrs[loop], &graph.nodes[loop]
    if (type(graph.ops[loop]) is not type(graph.ops[node]) or (<Op>graph.ops[loop]).stateful
            or others["body"] is not of_body or others.get("snapshots") is not None
            or other.first_output != graph.args[row.inputs]
            or others["n_variables"] != attrs["n_variables"]
            or others["n_stacks"] != attrs["n_stacks"]
            or others["ragged_kept"] != attrs["ragged_kept"][:len(others["ragged_kept"])]
            or others["reverse"] != attrs["reverse"]
            or others["ragged_stacks"] != attrs["ragged_stacks"]
            or len(others["body_inputs"]) != len(attrs["body_inputs"])):
        return False
    n_same = attrs["n_variables"] + attrs["n_stacks"] + len(attrs["ragged_stacks"])
    for i in range(1, 1 + n_same):
        if graph.args[row.inputs + i] != graph.args[other.inputs + i]:
            return False
    for i, k in zip(attrs["body_inputs"], others["body_inputs"]):
        if graph.args[row.inputs + i] != graph.args[other.inputs + <int32_t>k]:
            return False
    return True


cdef tuple operands_of_branches(SymbolicGraph graph, int32_t node):
    """Return the symbols of the predicate and of the arguments of each branch."""
    cdef int32_t first = graph.nodes[node].inputs, i
    return (graph.args[first], *[tuple([graph.args[first + i] for i in places])
                                 for places in graph.attrs[node]["positions"]])


cdef int merge(Rewriting rewriting, list chain) except -1:
    """Build the last history in place of the first node, with a loop's condition."""
    cdef SymbolicGraph source = rewriting.source
    cdef int32_t node = chain[0], history = chain[len(chain) - 1]
    cdef int32_t n_outputs = source.nodes[history].n_outputs
    cdef int32_t n_kept, n_ragged, built, first, i
    cdef Node* row
    cdef int32_t* inputs = NULL
    cdef dict attrs = source.attrs[history]
    cdef bint is_loop = "body" in attrs
    if is_loop:
        attrs = {**source.attrs[node], "body": attrs["body"], "ragged_kept": attrs["ragged_kept"],
                 "snapshots": attrs.get("snapshots")}
    row = &source.nodes[node if is_loop else history]
    resize(<void**>&inputs, row.n_inputs + 1, sizeof(int32_t))
    try:
        for i in range(row.n_inputs):
            inputs[i] = rewriting.mapping[source.args[row.inputs + i]]
        built = rewriting.target.append(
            <Op>source.ops[node], attrs, inputs, row.n_inputs, n_outputs)
    finally:
        release(inputs)
    located_as(rewriting.target, built, source, node)
    rewriting.target.nodes[built].context = source.nodes[node].context
    first = rewriting.target.n_symbols
    for i in range(n_outputs):
        rewriting.target.append_symbol(spec_at(source, source.nodes[history].first_output + i))
    n_outputs -= <int32_t>len(attrs["ragged_kept"]) if is_loop else 0
    for node in chain:
        # A node's own results are the first ones of its history; lengths of all stacks follow.
        row = &source.nodes[node]
        n_ragged = <int32_t>len(source.attrs[node]["ragged_kept"]) if is_loop else 0
        n_kept = row.n_outputs - n_ragged
        for i in range(row.n_outputs):
            rewriting.mapping[row.first_output + i] = (
                first + i if i < n_kept else first + n_outputs + i - n_kept)
        rewriting.note(node, built)
    return 0
