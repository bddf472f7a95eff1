from cytape.core.interrupts cimport OP_EFFORT, effort_so_far, spend
from cytape.ops.calls.dispatch cimport Op
from cytape.ops.calls.tangents cimport follow
from cytape.ops.calls.node_store cimport Node
from cytape.ops.calls.symbolic cimport SymbolicGraph, call_of_node
from cytape.tensor.recording.state cimport Recorder, TangentRecorder
from cytape.tensor.tensor cimport Tensor
from cytape.tensor.values.value cimport Value
from libc.stdint cimport int32_t, int64_t

from contextlib import nullcontext

from cytape.graph.model.contexts import overrides_within
from cytape.graph.run.interpreter import needed_nodes
from cytape.graph.tracing.lost_counts import warn_of_counts
from cytape.ops.calls.tangents import fetch
from cytape.ops.engine.tensor_vspace import compute_gradients, tensor_vspace
from cytape.ops.python.draws import new_stream
from cytape.tensor.recording.state import stop_recording, unrecorded

cdef enum:
    ATTRS_BYTES = 184  # size of a dict of a few attributes

cdef int64_t* effort = effort_so_far()


def symbolic_gradients(SymbolicGraph graph not None, targets, sources, seeds) -> list:
    """Build the gradients of symbols of a graph, in the graph that this thread builds.

    Parameters
    ----------
    graph : SymbolicGraph
    targets, sources : sequence of int
        Symbols.
    seeds : list of Tensor or None
        The gradient of each target.

    Returns
    -------
    list of Tensor, IndexedSlices or None
        Per source.
    """
    cdef Recorder recorder = Recorder(False, False)
    cdef list handles = [graph.tensor_at(symbol) for symbol in sources]
    warn_of_counts(graph, targets, sources)
    for handle in handles:
        if handle.spec.trainable:
            recorder.watch(handle.id)
    with unrecorded():
        recorder.push()
        try:
            replay(graph, recorded_nodes(graph), tell_tapes)
        finally:
            recorder.pop()
        return compute_gradients(
            recorder, [graph.tensor_at(symbol) for symbol in targets], handles, seeds)


def symbolic_tangents(SymbolicGraph graph not None, sources, tangents, targets, nodes=None,
                      bint use_batch=False) -> list:
    """Build the tangents of symbols of a graph, in the graph that this thread builds.

    Parameters
    ----------
    graph : SymbolicGraph
    sources : sequence of int
        Symbols.
    tangents : list of Tensor or None
        The tangent of each source.
    targets : sequence of int
        Symbols.
    nodes : iterable of int, optional
        Nodes to follow, in order. Default: those the targets need, without unrecorded ones.
    use_batch : bool, optional
        Whether tangents have a leading axis, of directions.

    Returns
    -------
    list of Tensor or None
        Per target.
    """
    cdef TangentRecorder accumulator = TangentRecorder(tensor_vspace, use_batch)
    cdef list handles = [graph.tensor_at(symbol) for symbol in sources]
    warn_of_counts(graph, targets, [
        symbol for symbol, tangent in zip(sources, tangents) if tangent is not None])
    for handle, tangent in zip(handles, tangents):
        if tangent is not None:
            accumulator.watch(handle.id, tangent)
    with unrecorded():
        accumulator.push()
        try:
            if nodes is None:
                needed = set(needed_nodes(graph, targets, (), waits=False))
                nodes = [node for node in recorded_nodes(graph) if node in needed]
            replay(graph, nodes, tell_accumulators)
        finally:
            accumulator.pop()
    return [fetch(accumulator, graph.tensor_at(symbol).id) for symbol in targets]


cdef object recorded_nodes(SymbolicGraph graph):
    """Return the nodes without those built where recording is off."""
    cdef int32_t n
    cdef set passed_by = {number for number, context in enumerate(graph.contexts)
                          if not context.recorded}
    if not passed_by:
        return range(graph.n_nodes)
    return [n for n in range(graph.n_nodes) if graph.nodes[n].context not in passed_by]


ctypedef int (*tell_t)(Op op, list inputs, list outputs, dict attrs) except -1


cdef int tell_tapes(Op op, list inputs, list outputs, dict attrs) except -1:
    return op.record_call(inputs, outputs, attrs)


cdef int tell_accumulators(Op op, list inputs, list outputs, dict attrs) except -1:
    return follow(op, inputs, outputs, attrs)


cdef int replay(SymbolicGraph graph, nodes, tell_t tell) except -1:
    """Record those of some nodes that are differentiable, in order."""
    cdef int32_t n, i
    cdef Node node
    cdef bint trainable
    cdef list inputs, outputs
    cdef Value value
    for n in nodes:
        spend(effort, OP_EFFORT)
        node = graph.nodes[graph.valid_node(n)]
        if node.n_inputs == 0:
            continue
        inputs = [graph.value_at(graph.args[node.inputs + i]) for i in range(node.n_inputs)]
        outputs = [graph.value_at(node.first_output + i) for i in range(node.n_outputs)]
        trainable = False
        for value in outputs:
            trainable |= value.spec.trainable
        if trainable:
            op, attrs = call_of_node(graph, n)
            tell(<Op>op, inputs, outputs, attrs)
    return 0


def inline(SymbolicGraph graph not None, dict symbols, SymbolicGraph into not None, some=None,
           bint afresh=False):
    """Copy the nodes of a graph to another.

    Parameters
    ----------
    graph : SymbolicGraph
    symbols : dict of int to Tensor
        Tensors for the symbols of the graph that have a value already. The other symbols are added
        to it.
    into : SymbolicGraph
        The graph that this thread builds.
    some : iterable of int, optional
        The nodes, in order. None: all.
    afresh : bool, optional
        Whether they are no parts of a derivative that is being built: computed as they were.
    """
    cdef int32_t n, number, present = into.context
    cdef Op op
    cdef dict contexts = {0: present}   # by those of the graph
    cdef dict nodes = {}                # of `into`, by those of the graph
    for n in range(graph.n_nodes) if some is None else some:
        spend(effort, OP_EFFORT)
        outputs = graph.outputs_of(graph.valid_node(n))
        op = graph.ops[n]
        if len(outputs) and outputs[0] in symbols and (
                op.stateful or all([symbol in symbols for symbol in outputs])):
            continue
        number = graph.nodes[n].context
        if number not in contexts:
            contexts[number] = context_within(into, present, graph.contexts[number])
        inputs = [symbols[symbol] for symbol in graph.inputs_of(n)]
        nodes[n], results = built_again(graph, n, inputs, into, contexts[number], afresh)
        if graph.has_control_inputs:
            waits_for = [nodes[before] for before in graph.control_inputs_of(n)
                         if before in nodes]
            if waits_for:
                into.add_control_inputs(into.operation_at(nodes[n]),
                                        [into.operation_at(before) for before in waits_for])
        for symbol, result in zip(outputs, results):
            symbols.setdefault(symbol, result)


def build_again(SymbolicGraph graph not None, int32_t n, list inputs not None,
                SymbolicGraph into not None, int32_t context, bint afresh=False):
    """Copy a node of a graph, to another or the same.

    Parameters
    ----------
    graph : SymbolicGraph
    n : int
        The node.
    inputs : list of Tensor
        Of the new node.
    into : SymbolicGraph
        The graph that this thread builds.
    context : int
        Of the new node; whether recorders follow it is said by that of the old one.
    afresh : bool, optional
        Whether it is no part of a derivative that is being built.

    Returns
    -------
    node : int
        The new one. Those of its derivative may follow it, if a recorder is active.
    outputs : sequence of Tensor
    """
    return built_again(graph, n, inputs, into, context, afresh)


cdef tuple built_again(SymbolicGraph graph, int32_t n, list inputs, SymbolicGraph into,
                       int32_t context, bint afresh):
    cdef object code = into.code        # the copy keeps the place of the original
    cdef int32_t instruction = into.instruction, before = into.context
    cdef int32_t differentiating = into.differentiating
    cdef Node node = graph.nodes[graph.valid_node(n)]
    op, attrs = graph.ops[n], graph.attrs[n]
    stream = attrs.get("stream")
    if stream is not None and not stream.given:
        attrs = {**attrs, "stream": new_stream(into, None, stream.unseeded)}
    if node.code != NULL:
        into.code, into.instruction = <object>node.code, node.instruction
    into.context = context
    into.differentiating = node.is_derivative + (0 if afresh else differentiating)
    try:
        with nullcontext() if graph.contexts[node.context].recorded else stop_recording():
            results = into.build(op, *inputs, **attrs)
    finally:
        into.differentiating = differentiating
        into.context = before
        into.code, into.instruction = code, instruction
    if not isinstance(results, (tuple, list)):
        results = [results]
    return into.node_of(into.symbol_of(results[0])) if results else into.n_nodes - 1, results


def context_within(into, int32_t present, inner):
    """Return the number of a context that combines those of two graphs."""
    cdef int32_t before = into.enter_context(present)
    try:
        outer = into.contexts[present]
        return into.context_with(device=inner.device or outer.device,
                                 overrides=overrides_within(outer.overrides, inner.overrides),
                                 recorded=outer.recorded and inner.recorded)
    finally:
        into.enter_context(before)


def kept_by(SymbolicGraph graph not None, type body not None) -> tuple:
    """Return the size of a graph: the bytes of its nodes and constants, and bodies.

    Parameters
    ----------
    graph : SymbolicGraph
    body : type
        Of the bodies of branches and loops.

    Returns
    -------
    n_bytes : int
    bodies : list
    """
    cdef Py_ssize_t n_bytes = graph.size_of_nodes()
    cdef list bodies = []
    cdef dict attrs
    for attrs in graph.attrs:
        if not attrs:  # most calls have none
            continue
        n_bytes += ATTRS_BYTES
        for value in attrs.values():
            if type(value) is Tensor:  # a constant's
                n_bytes += (<Tensor>value).held.spec.nbytes
            elif isinstance(value, tuple):
                for x in <tuple>value:
                    if type(x) is body:
                        bodies.append(x)
            elif type(value) is body:
                bodies.append(value)
    return n_bytes, bodies
