from cytape.ops.engine.general_op cimport GeneralOp
from cytape.ops.calls.node_store cimport Node
from cytape.ops.calls.symbolic cimport SymbolicGraph
from cytape.tensor.values.spec cimport Spec
from libc.stdint cimport int32_t


cdef inline bint passes(SymbolicGraph graph, const unsigned char* marks, int32_t symbol,
                        bint gradients) noexcept:
    """Whether a symbol depends on a source, and, of gradients, whether one can pass through it."""
    return marks[symbol] & REACHED and (
        not gradients or (<Spec>graph.symbols[symbol].spec).trainable)


cdef int32_t marked_nodes(SymbolicGraph graph, bytearray marks) except -1:
    """Return the number of nodes with marks; nodes that were built since are last."""
    cdef Py_ssize_t n_symbols = len(marks)
    cdef int32_t n_nodes = graph.n_nodes
    if n_symbols > graph.n_symbols:
        raise ValueError(f"{n_symbols} marks for a graph of {graph.n_symbols} tensors")
    while n_nodes and graph.nodes[n_nodes - 1].first_output >= n_symbols:
        n_nodes -= 1
    return n_nodes


cdef bint ends_here(SymbolicGraph graph, int32_t node) except -1:
    """Return whether a node has no gradient function, of its op or another one."""
    op = graph.ops[node]
    return isinstance(op, GeneralOp) and not (<GeneralOp>op).differentiable and not (
        graph.has_overrides and graph.gradient_override_of(node) is not None)


def reach(SymbolicGraph graph not None, bytearray marks not None, bint gradients=True) -> None:
    """Mark symbols that depend on sources.

    Parameters
    ----------
    graph : SymbolicGraph
    marks : bytearray
        One byte per symbol; later symbols are ignored. Sources are marked as reached beforehand.
        Stopped symbols are reached only if they were marked before.
    gradients : bool, optional
        Whether only dependences count through which gradients pass.
    """
    cdef unsigned char* c_marks = marks
    cdef int32_t node, i, first
    cdef Node* found
    cdef bint reached
    for node in range(marked_nodes(graph, marks)):
        found = &graph.nodes[node]
        reached = False
        for i in range(found.n_inputs):
            if passes(graph, c_marks, graph.args[found.inputs + i], gradients):
                reached = True
                break
        if reached and not (gradients and ends_here(graph, node)):
            first = found.first_output
            for i in range(first, first + found.n_outputs):
                if not c_marks[i] & STOPPED:
                    c_marks[i] |= REACHED


def nodes_between(
    SymbolicGraph graph not None, bytearray marks not None, bint gradients=True
) -> list:
    """Mark as wanted what targets depend on; return the nodes between sources and targets.

    Parameters
    ----------
    graph : SymbolicGraph
    marks : bytearray
        As `reach` left it, with the targets marked as wanted.
    gradients : bool, optional
        As for `reach`.

    Returns
    -------
    list of int
        The nodes with a wanted output, the latest first: each stands behind all that depend on it.
    """
    cdef unsigned char* c_marks = marks
    cdef int32_t node, i, symbol
    cdef Node* found
    cdef bint wanted, differentiated
    cdef list nodes = []
    for node in range(marked_nodes(graph, marks) - 1, -1, -1):
        found = &graph.nodes[node]
        wanted = differentiated = False
        for symbol in range(found.first_output, found.first_output + found.n_outputs):
            if c_marks[symbol] & BETWEEN:
                wanted = True
                differentiated |= not c_marks[symbol] & STOPPED
        if not wanted:
            continue
        nodes.append(node)
        if differentiated:
            for i in range(found.n_inputs):
                symbol = graph.args[found.inputs + i]
                if passes(graph, c_marks, symbol, gradients):
                    c_marks[symbol] |= BETWEEN
    return nodes
