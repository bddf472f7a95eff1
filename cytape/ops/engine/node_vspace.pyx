from cpython.ref cimport Py_DECREF, Py_INCREF, PyObject
from cytape.core cimport vspace
from cytape.core.vspace cimport NEEDED, BackwardCall
from cytape.tensor.recording.state cimport building
from cytape.tensor.tensor cimport another_handle
from cytape.tensor.values.value cimport Value
from libc.stdint cimport int32_t, uint64_t
from libc.stdlib cimport calloc, free

from cytape.ops.calls.dispatch cimport Kept, Op, release_objects
from cytape.ops.calls.node_store cimport Node
from cytape.ops.calls.op_call cimport backward_by_rule
from cytape.ops.calls.symbolic cimport SymbolicGraph, call_of_node

from .general_op cimport GeneralOp
from .tape_entry cimport fill_refs, items_of

from cytape.errors import NotDifferentiableError


def gradients_of_node(SymbolicGraph graph not None, int32_t node, list output_gradients,
                      list needed, rule=None, int32_t outputs_of=-1) -> list:
    """Call the gradient function of one op of a graph; its ops go to the graph being built.

    Parameters
    ----------
    graph : SymbolicGraph
    node : int
    output_gradients : list of Tensor, IndexedSlices or None
        One per output; None if none arrived. Ops with optional gradients get None instead of zeros.
    needed : list of bool
        Per input: is its gradient wanted?
    rule : callable, optional
        Replaces the op's gradient function: called with an `OpCall` and one gradient per output, it
        returns one (or None) per input.
    outputs_of : int, optional
        Another node with the same results, whose outputs the rule reads instead. -1: none.

    Returns
    -------
    list of Tensor, IndexedSlices or None
        One per input, in its shape and dtype.

    Raises
    ------
    NotDifferentiableError
        If the op has no gradient function.
    InvalidGradientError
        If that returns a wrong number of gradients, or one of a wrong shape.
    TypeError
        If one is no gradient at all.

    Examples
    --------
    >>> import cytape
    >>> from cytape.graph import Graph
    >>> graph = Graph()
    >>> with graph.as_default():
    ...     x = graph.placeholder("float64", (3,))
    ...     y = x * 2.0
    ...     dx, _ = gradients_of_node(graph, y.op.node, [cytape.constant([1.0, 1.0, 1.0])],
    ...                               [True, False])
    >>> dx.shape
    (3,)
    """
    cdef Node* found = &graph.nodes[graph.valid_node(node)]
    cdef int32_t n_in = found.n_inputs, n_out = found.n_outputs, i
    cdef int32_t first_output = found.first_output, inputs = found.inputs
    if outputs_of >= 0:
        first_output = graph.nodes[graph.valid_node(outputs_of)].first_output
    cdef Op op = graph.ops[node]
    cdef dict attrs = graph.attrs[node]
    cdef BackwardCall call
    cdef void** row
    cdef list in_values = [], out_values = [], results = []
    cdef Kept kept
    cdef PyObject* tail
    if rule is None:
        op, attrs = call_of_node(graph, node)
    if rule is None and isinstance(op, GeneralOp):
        if not (<GeneralOp>op).differentiable:
            return [None] * n_in
        rule = (<GeneralOp>op).vjp
        if rule is None:
            raise NotDifferentiableError(
                f"no gradient is registered for operation {graph.name_of(node)!r} (op type "
                f"{op.op_type.name!r}): register one with "
                f"cytape.register_gradient({op.op_type.name!r}), or, if it is to count as a "
                "constant, stop the gradient with cytape.stop_gradient")
        own = True
    else:
        own = rule is None
    kept.inputs = kept.outputs = ~<uint64_t>0  # read by a rule that is not the op's own
    for i in range(n_in):
        in_values.append(graph.value_at(graph.args[inputs + i]))
    for i in range(n_out):
        out_values.append(graph.value_at(first_output + i))
    last = op.tail_of(attrs) if own else attrs
    if own:
        kept = op.kept
    tail = <PyObject*>last
    row = <void**>calloc(4 * n_in + 3 * n_out + 2, sizeof(void*))
    if row == NULL:
        raise MemoryError()
    call.kind = &op.op_type.kind
    call.n_refs = fill_refs(row, kept, items_of(in_values), n_in, items_of(out_values), n_out,
                            &tail, last is not None)
    call.n_outputs = n_out
    call.n_inputs = n_in
    call.refs = row
    call.output_gradients = row + call.n_refs
    call.input_gradients = call.output_gradients + n_out
    call.arrived = call.input_gradients + n_in
    call.needed = <const char*>(call.arrived + n_in)
    for i in range(n_in):
        (<char*>call.needed)[i] = NEEDED if needed[i] else 0
    into = building()
    if into is not None:
        (<SymbolicGraph>into).differentiating += 1
    try:
        for i in range(n_out):
            if output_gradients[i] is not None:
                Py_INCREF(output_gradients[i])
                call.output_gradients[i] = <void*><PyObject*>output_gradients[i]
        if rule is None:
            op.backward(&call)
        else:
            backward_by_rule(op, &call, rule, kept.outputs, graph, node)
        for i in range(n_in):
            gradient = None
            if call.input_gradients[i] != NULL:
                gradient = <object>call.input_gradients[i]
            results.append(another_handle(gradient) if type(gradient) is Value else gradient)
        return results
    finally:
        if into is not None:
            (<SymbolicGraph>into).differentiating -= 1
        for i in range(n_out + n_in):  # outputs first, then inputs
            if call.output_gradients[i] != NULL:
                Py_DECREF(<object>call.output_gradients[i])
        release_objects(row, call.n_refs, None)
        free(row)


def takes_none(Op op not None, int position) -> bool:
    """Return whether a gradient function takes None for an output whose gradient is zero."""
    return vspace.takes_none(&op.op_type.kind, position)
