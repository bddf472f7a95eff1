cimport numpy as cnp
from cytape.ops.calls.dispatch cimport Lowering, Op
from cytape.ops.engine.elementwise_op cimport ElementwiseOp
from cytape.ops.calls.node_store cimport Node
from cytape.ops.engine.structural_op cimport StructuralOp
from cytape.ops.kernels.moves cimport Moves
from cytape.tensor.values.spec cimport scalar_spec
from cytape.tensor.tensor cimport Tensor, as_ndarray, new_tensor
from cytape.tensor.values.value cimport array_of, copy_of_array
from libc.string cimport memcmp

from .rewriting cimport ABSENT, RewrittenGraph, spec_at

cdef Op broadcast_to_op, constant_op

import warnings

import numpy as np

from cytape.ops.adjoints.conform import broadcast_to_op
from cytape.ops.creation import constant_op

cnp.import_array()

cdef enum:
    FOLDED_BYTES = 1 << 20  # limit of a folded result, unless its operands are larger
    SHARED_BYTES = 64       # equal folded results up to this size are merged


cdef Value constant_at(SymbolicGraph graph, int32_t symbol):
    cdef int32_t node = graph.symbols[symbol].node
    if (<Op>graph.ops[node]).lowering != Lowering.CONSTANT:
        return None
    return (<Tensor>(<dict>graph.attrs[node])["value"]).held


cdef Value uniform(SymbolicGraph graph, int32_t symbol):
    cdef int32_t node = graph.symbols[symbol].node
    cdef Value value
    while <Op>graph.ops[node] is broadcast_to_op:
        node = graph.symbols[graph.args[graph.nodes[node].inputs]].node
    value = constant_at(graph, graph.nodes[node].first_output) if graph.nodes[node].n_outputs else (
        None)
    return value if value is not None and value.spec.size == 1 else None


cdef bint is_everywhere(SymbolicGraph graph, int32_t symbol, number) except -1:
    """Return whether all elements of a float tensor equal a number, to the bit; False for None."""
    cdef Value value = None if number is None else uniform(graph, symbol)
    cdef double found, expected
    if value is None:
        return False
    expected = number
    if value.spec.type_num == cnp.NPY_DOUBLE:
        found = (<double*>value.data)[0]
    elif value.spec.type_num == cnp.NPY_FLOAT:
        found = (<float*>value.data)[0]
    else:
        return False
    return memcmp(&found, &expected, sizeof(double)) == 0  # 0.0 == -0.0


cdef int32_t known_result(Rewriting rewriting, int32_t node) except -2:
    cdef int32_t symbol = ABSENT
    if rewriting.source.nodes[node].n_outputs == 1 and rewriting.source.nodes[node].n_inputs:
        symbol = neutral(rewriting, node,
                         spec_at(rewriting.source, rewriting.source.nodes[node].first_output))
        if symbol == ABSENT:
            symbol = folded(rewriting, node)
    return symbol


cdef bint parts_known(Rewriting rewriting, int32_t node) except -1:
    cdef Node* found = &rewriting.source.nodes[node]
    cdef int32_t i, number
    cdef Value value
    cdef Spec spec
    cdef Op op = <Op>rewriting.source.ops[node]
    if not op.makes_views or found.n_inputs != 1 or rewriting.pinned[node]:
        return False
    value = uniform(rewriting.target, rewriting.mapping[rewriting.source.args[found.inputs]])
    if value is None or value.spec.ndim or not makes_parts(rewriting.source, node):
        return False
    for i in range(found.n_outputs):
        if not spec_at(rewriting.source, found.first_output + i).known:
            return False
    number = constant_symbol(rewriting.target, value)
    for i in range(found.n_outputs):
        spec = spec_at(rewriting.source, found.first_output + i)
        rewriting.mapping[found.first_output + i] = (
            number if spec is value.spec else broadcast_symbol(rewriting.target, number, spec))
    rewriting.note(node, rewriting.target.symbols[number].node)
    return True


cdef bint makes_parts(SymbolicGraph graph, int32_t node) except -1:
    """Return whether all elements of the outputs are elements of the only input."""
    cdef Op op = <Op>graph.ops[node]
    cdef Spec spec = spec_at(graph, graph.args[graph.nodes[node].inputs])
    cdef Moves moves
    if type(op) is not StructuralOp:
        return op.lowering == Lowering.READ_PART
    if not spec.known or op is broadcast_to_op:
        return False
    moves = (<StructuralOp>op).moves_of((spec,), graph.attrs[node])
    return moves is not None and moves.are_views


cdef int32_t neutral(Rewriting rewriting, int32_t node, Spec spec) except -2:
    cdef Op op = <Op>rewriting.source.ops[node]
    cdef Node* found = &rewriting.source.nodes[node]
    cdef RewrittenGraph target = rewriting.target
    cdef int32_t x, y, inner
    if rewriting.pinned[node] or not (
            op.same_if_same_spec or op.is_own_inverse or op.neutral is not None):
        return ABSENT
    x = rewriting.mapping[rewriting.source.args[found.inputs]]
    if op.same_if_same_spec:
        return x if spec_at(target, x) is spec and spec.known else ABSENT
    if op.is_own_inverse:
        inner = target.symbols[x].node
        return target.args[target.nodes[inner].inputs] if target.ops[inner] is op else ABSENT
    y = rewriting.mapping[rewriting.source.args[found.inputs + 1]]
    if is_everywhere(target, y, op.neutral[1]):
        return repeated(target, x, spec)
    return repeated(target, y, spec) if is_everywhere(target, x, op.neutral[0]) else ABSENT


cdef int32_t repeated(RewrittenGraph target, int32_t symbol, Spec spec) except -2:
    """Return the uniform value of a symbol, broadcast to a result; ABSENT if it is unknown."""
    cdef Spec own = spec_at(target, symbol)
    if own is spec:
        return symbol
    if own.type_num != spec.type_num or not own.known or not spec.known:
        return ABSENT
    return broadcast_symbol(target, symbol, spec)


cdef int32_t folded(Rewriting rewriting, int32_t node) except -2:
    cdef Node* found = &rewriting.source.nodes[node]
    cdef Op op = <Op>rewriting.source.ops[node], made_by
    cdef SymbolicGraph target = rewriting.target
    cdef Spec spec
    cdef Value value
    cdef Py_ssize_t nbytes = FOLDED_BYTES
    cdef int32_t i, symbol
    cdef bint everywhere = False
    cdef list values
    for i in range(found.n_inputs):  # most nodes have an unknown first input
        symbol = rewriting.mapping[rewriting.source.args[found.inputs + i]]
        made_by = <Op>target.ops[target.symbols[symbol].node]
        if made_by.lowering != Lowering.CONSTANT:
            if made_by is not broadcast_to_op or type(op) is not ElementwiseOp or (
                    uniform(target, symbol) is None):
                return ABSENT
            everywhere = True
    spec = spec_at(rewriting.source, found.first_output)
    if op.stateful or rewriting.pinned[node] or not spec.known or op.stays_view:
        return ABSENT
    values = []
    for i in range(found.n_inputs):
        symbol = rewriting.mapping[rewriting.source.args[found.inputs + i]]
        value = uniform(target, symbol) if everywhere else constant_at(target, symbol)
        if value is None:
            return ABSENT
        values.append(value)
        nbytes = max(nbytes, value.spec.nbytes)
    if everywhere:
        value = computed(op, values, {}, True)
        if value is None or value.spec is not scalar_spec(spec):
            return ABSENT
        return broadcast_symbol(rewriting.target, constant_symbol(rewriting.target, value), spec)
    if spec.nbytes > nbytes or (
            op is broadcast_to_op and spec.size > (<Value>values[0]).spec.size):
        return ABSENT  # a broadcast at the use is free
    value = computed(op, values, rewriting.source.attrs[node], False)
    if value is None or value.spec is not spec:
        return ABSENT
    return constant_symbol(rewriting.target, value)


cdef Value computed(Op op, list values, dict attrs, bint as_scalars):
    """Return an op's result for constants; None if it raises or warns, so that the run does."""
    cdef Value value
    arrays = [array_of(value) for value in values]
    if as_scalars:
        arrays = [array.reshape(()) for array in arrays]
    try:
        with np.errstate(all="raise"), warnings.catch_warnings():
            warnings.simplefilter("error")
            result = op.forward(*arrays, **attrs)
        for array in arrays:
            if array.nbytes > FOLDED_BYTES and np.may_share_memory(array, result):
                return None  # a view is free
        return copy_of_array(as_ndarray(result))
    except Exception:
        return None


cdef int32_t broadcast_symbol(RewrittenGraph target, int32_t symbol, Spec spec) except -1:
    key = spec, symbol
    found = target.numbers.get(key)
    if found is None:
        target.append(broadcast_to_op, {"shape": spec.shape}, &symbol, 1, 1)
        found = target.numbers[key] = target.append_symbol(spec)
    return found


cdef int32_t constant_symbol(RewrittenGraph target, Value value) except -1:
    key = None
    if value.spec.nbytes <= SHARED_BYTES:
        key = value.spec, value.data[:value.spec.nbytes]
        symbol = target.numbers.get(key)
        if symbol is not None:
            return symbol
    target.append(constant_op, {"value": new_tensor(value)}, NULL, 0, 1)
    target.append_symbol(value.spec)
    if key is not None:
        target.numbers[key] = target.n_symbols - 1
    return target.n_symbols - 1
