cimport numpy as cnp
from cytape.ops.calls.dispatch cimport Op
from cytape.ops.engine.elementwise_op cimport ElementwiseOp
from cytape.ops.calls.node_store cimport Node
from cytape.ops.engine.structural_op cimport StructuralOp
from cytape.tensor.values.spec cimport scalar_spec
from cytape.tensor.tensor cimport Tensor, as_ndarray, new_tensor
from cytape.tensor.values.value cimport array_of, copy_of_array
from libc.string cimport memcmp

from .rewriting cimport ABSENT, RewrittenGraph, spec_at

cdef Op broadcast_to_op, constant_op

import warnings

import numpy as np

from cytape.ops.adjoints.conform import broadcast_to_op, cast_op, sum_to_op
from cytape.ops.creation import constant_op, identity_op, stop_gradient_op
from cytape.ops.elementwise import add, divide, multiply, negative, positive, subtract
from cytape.ops.indexing import get_item_op
from cytape.ops.joining import split_op
from cytape.ops.shaping import (
    atleast_1d_op, atleast_2d_op, atleast_3d_op, expand_dims_op, reshape_op, squeeze_op,
    transpose_op)

cnp.import_array()

cdef enum:
    FOLDED_BYTES = 1 << 20  # limit of a folded result, unless its operands are larger
    SHARED_BYTES = 64       # equal folded results up to this size are merged


cdef int follow(Rule rule, tuple ops) except -1:
    cdef Op op  # a TypeError for other objects
    for op in ops:
        op.folding = rule
    return 0


follow(KEEPS_ELEMENTS, (
    atleast_1d_op, atleast_2d_op, atleast_3d_op, cast_op, expand_dims_op, identity_op, positive,
    reshape_op, squeeze_op, stop_gradient_op, sum_to_op))
follow(BROADCAST, (broadcast_to_op,))
follow(ADD, (add,))
follow(SUBTRACT, (subtract,))
follow(MULTIPLY, (multiply,))
follow(DIVIDE, (divide,))
follow(NEGATIVE, (negative,))
follow(CONSTANT, (constant_op,))
follow(PARTS, (get_item_op, split_op))
follow(VIEW, (transpose_op,))


cdef Value constant_at(SymbolicGraph graph, int32_t symbol):
    cdef int32_t node = graph.symbols[symbol].node
    if (<Op>graph.ops[node]).folding != CONSTANT:
        return None
    return (<Tensor>(<dict>graph.attrs[node])["value"]).held


cdef Value uniform(SymbolicGraph graph, int32_t symbol):
    cdef int32_t node = graph.symbols[symbol].node
    cdef Value value
    while (<Op>graph.ops[node]).folding == BROADCAST:
        node = graph.symbols[graph.args[graph.nodes[node].inputs]].node
    value = constant_at(graph, graph.nodes[node].first_output) if graph.nodes[node].n_outputs else (
        None)
    return value if value is not None and value.spec.size == 1 else None


cdef bint is_everywhere(SymbolicGraph graph, int32_t symbol, double number) except -1:
    """Return whether all elements of a float tensor equal a number, to the bit."""
    cdef Value value = uniform(graph, symbol)
    cdef double found
    if value is None:
        return False
    if value.spec.type_num == cnp.NPY_DOUBLE:
        found = (<double*>value.data)[0]
    elif value.spec.type_num == cnp.NPY_FLOAT:
        found = (<float*>value.data)[0]
    else:
        return False
    return memcmp(&found, &number, sizeof(double)) == 0  # 0.0 == -0.0


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
    if op.folding != PARTS and op.folding != VIEW and (
            op.folding != KEEPS_ELEMENTS or type(op) is not StructuralOp) or (
            found.n_inputs != 1 or rewriting.pinned[node]):
        return False
    value = uniform(rewriting.target, rewriting.mapping[rewriting.source.args[found.inputs]])
    if value is None or value.spec.ndim:
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


cdef int32_t neutral(Rewriting rewriting, int32_t node, Spec spec) except -2:
    cdef int rule = (<Op>rewriting.source.ops[node]).folding
    cdef Node* found = &rewriting.source.nodes[node]
    cdef RewrittenGraph target = rewriting.target
    cdef int32_t x, y, inner
    if rule == NO_RULE or rule >= CONSTANT or rewriting.pinned[node]:
        return ABSENT
    x = rewriting.mapping[rewriting.source.args[found.inputs]]
    if rule <= BROADCAST:
        return x if spec_at(target, x) is spec and spec.known else ABSENT
    if rule == NEGATIVE:
        inner = target.symbols[x].node
        if target.ops[inner] is rewriting.source.ops[node]:
            return target.args[target.nodes[inner].inputs]
        return ABSENT
    y = rewriting.mapping[rewriting.source.args[found.inputs + 1]]
    if is_neutral(target, y, rule):
        return repeated(target, x, spec)
    if (rule == ADD or rule == MULTIPLY) and is_neutral(target, x, rule):
        return repeated(target, y, spec)
    return ABSENT


cdef int32_t repeated(RewrittenGraph target, int32_t symbol, Spec spec) except -2:
    """Return the uniform value of a symbol, broadcast to a result; ABSENT if it is unknown."""
    cdef Spec own = spec_at(target, symbol)
    if own is spec:
        return symbol
    if own.type_num != spec.type_num or not own.known or not spec.known:
        return ABSENT
    return broadcast_symbol(target, symbol, spec)


cdef bint is_neutral(SymbolicGraph target, int32_t symbol, int rule) except -1:
    # -0.0 + 0.0 is 0.0: only x + -0.0 and x - 0.0 equal x for all x.
    return is_everywhere(target, symbol,
                         -0.0 if rule == ADD else 0.0 if rule == SUBTRACT else 1.0)


cdef int32_t folded(Rewriting rewriting, int32_t node) except -2:
    cdef Node* found = &rewriting.source.nodes[node]
    cdef Op op = <Op>rewriting.source.ops[node]
    cdef SymbolicGraph target = rewriting.target
    cdef Spec spec
    cdef Value value
    cdef Py_ssize_t nbytes = FOLDED_BYTES
    cdef int32_t i, symbol
    cdef int rule
    cdef bint everywhere = False
    cdef list values
    for i in range(found.n_inputs):  # most nodes have an unknown first input
        symbol = rewriting.mapping[rewriting.source.args[found.inputs + i]]
        rule = (<Op>target.ops[target.symbols[symbol].node]).folding
        if rule != CONSTANT and (rule != BROADCAST or type(op) is not ElementwiseOp
                                 or uniform(target, symbol) is None):
            return ABSENT
        everywhere |= rule == BROADCAST
    spec = spec_at(rewriting.source, found.first_output)
    if op.stateful or rewriting.pinned[node] or not spec.known or op.folding == VIEW:
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
            op.folding == BROADCAST and spec.size > (<Value>values[0]).spec.size):
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
