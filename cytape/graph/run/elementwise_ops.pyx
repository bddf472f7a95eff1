cimport numpy as cnp
from cytape.ops.calls.node_store cimport Node
from cytape.ops.kernels.ufunc_loops cimport Loop, kernel_of
from cytape.ops.kernels.walk cimport plan
from cytape.tensor.values.spec cimport Spec
from libc.stdint cimport uint64_t
from numpy cimport npy_intp

from .instructions cimport (
    LOOP, N_OPERANDS, SHORT, Instruction, cast_loop, compared_type, converted_spec, direct_op,
    is_plain_integer, loop_of, scalar_kind, short_loop)
from .plan_layout cimport DEFERRED, NOWHERE, PLACED, SMALL_BYTES, Place

import numpy as np

cnp.import_array()

cdef Kernel add_kernel = kernel_of(np.add)


cdef bint elementwise(Code code, int32_t node, Kernel kernel) except -1:
    """Emit a ufunc of one or two operands; return False to leave it to Python."""
    cdef Node* row = &code.graph.nodes[node]
    cdef int32_t out = row.first_output, x, y
    cdef Place* of_x
    cdef Place* of_y
    cdef Spec spec_x, spec_y, spec = code.spec(out)
    cdef Loop* loop
    cdef int n_inputs = row.n_inputs
    if not 1 <= n_inputs <= 2 or not spec.known:
        return False
    if code.layout.places[out].kind != NOWHERE:
        return True  # it is fed
    x, y = code.graph.args[row.inputs], code.graph.args[row.inputs + n_inputs - 1]
    of_x, of_y = &code.layout.places[x], &code.layout.places[y]
    spec_x, spec_y = code.spec(x), code.spec(y)
    if not spec_x.known or not spec_y.known:
        return False
    if spec_x.type_num != spec_y.type_num:
        return elementwise_mixed(code, node, kernel, x, y)
    loop = loop_of(kernel, spec_x.type_num, spec)
    if loop == NULL or not spec_x.trainable and not is_plain_integer(kernel, spec_x.type_num):
        return False
    if of_x.kind == DEFERRED or of_y.kind == DEFERRED:
        if kernel is add_kernel and spec_x is spec_y:
            return code.accumulate(node, loop, x if of_x.kind == DEFERRED else y,
                                   y if of_x.kind == DEFERRED else x) == 0
        code.settle_both(x, y)
    return apply(code, node, direct_op(kernel), loop, x, y) == 0


cdef bint elementwise_mixed(Code code, int32_t node, Kernel kernel, int32_t x, int32_t y) except -1:
    """Emit a ufunc of operands of two dtypes; one operand is cast first."""
    cdef Spec spec = code.spec(code.graph.nodes[node].first_output)
    cdef int type_x = code.spec(x).type_num, type_y = code.spec(y).type_num
    cdef int type_num = spec.type_num
    cdef Loop* loop
    if type_num == cnp.NPY_BOOL:  # a comparison
        type_num = compared_type(code.spec(x), code.spec(y))
    loop = loop_of(kernel, type_num, spec)
    if loop == NULL or type_x != type_num and cast_loop(type_x, type_num) == NULL or (
            type_y != type_num and cast_loop(type_y, type_num) == NULL) or (
            type_num < cnp.NPY_FLOAT and not is_plain_integer(kernel, type_num)):
        return False
    code.settle_both(x, y)
    if type_x != type_num:
        x = converted(code, node, x, type_num)
    if type_y != type_num:
        y = converted(code, node, y, type_num)
    apply(code, node, direct_op(kernel), loop, x, y)
    code.release_temporaries()
    return True


cdef int apply(Code code, int32_t node, int op, const Loop* loop, int32_t x, int32_t y) except -1:
    """Emit a loop over one or two operands. op: number of a direct op, or -1."""
    cdef int32_t out = code.graph.nodes[node].first_output
    cdef int n_inputs = code.graph.nodes[node].n_inputs
    cdef Place* of_x = &code.layout.places[x]
    cdef Place* of_y = &code.layout.places[y]
    cdef Place* place = &code.layout.places[out]
    cdef Spec spec_x = code.spec(x), spec_y = code.spec(y), spec = code.spec(out)
    cdef Instruction* instruction
    cdef npy_intp step_x, step_y
    cdef int32_t operands[2]
    cdef int count
    if not (of_x.strides < 0 and (spec_x.size == spec.size or spec_x.size == 1)
            and of_y.strides < 0 and (spec_y.size == spec.size or spec_y.size == 1)):
        operands[0], operands[1] = x, y
        return apply_by_walk(code, node, loop, operands, n_inputs)
    step_x = spec_x.itemsize if spec_x.size == spec.size else 0
    step_y = spec_y.itemsize if spec_y.size == spec.size else 0
    count = 2 if x == y and n_inputs == 2 else 1
    if not (spec.itemsize == spec_x.itemsize
            and (step_x and code.take_over(out, x, count)
                 or n_inputs == 2 and step_y and code.take_over(out, y, count))):
        code.place_output(out)
    if spec.size == 0:
        return 0
    instruction = code.next(node, LOOP)
    instruction.data[0] = <char*>of_x.address
    instruction.data[1] = <char*>of_y.address
    instruction.data[n_inputs] = <char*>place.address
    instruction.loop = loop
    if op >= 0 and spec.size == 1 and scalar_kind(op, spec_x.type_num) >= 0:
        instruction.kind = scalar_kind(op, spec_x.type_num)
        return 0
    if op >= 0 and spec.size <= SHORT and short_loop(op, spec_x.type_num) != NULL:
        instruction.loop = short_loop(op, spec_x.type_num)
    instruction.work = spec_x.nbytes + spec_y.nbytes + spec.nbytes
    if n_inputs == 1:
        instruction.geometry = code.linear(spec.size, step_x, spec.itemsize, 0)
    else:
        instruction.geometry = code.linear(spec.size, step_x, step_y, spec.itemsize)
    return 0


cdef int apply_by_walk(Code code, int32_t node, const Loop* loop, const int32_t* operands,
                       int n) except -1:
    cdef int32_t out = code.graph.nodes[node].first_output
    cdef Spec spec = code.spec(out)
    cdef uint64_t addresses[N_OPERANDS]
    cdef bint all_items = True
    cdef Walk walk
    cdef int i
    for i in range(n):
        if is_like(code, operands[i], spec) and code.take_over(out, operands[i], 1):
            break
        all_items &= code.shows_item(operands[i])
    else:
        place_result(code, out, all_items)
    if not plan_result(code, out, &walk):
        return 0
    for i in range(n):
        code.join_place(&walk, operands[i])
        addresses[i] = code.layout.places[operands[i]].address
    code.join_place(&walk, out)
    addresses[n] = code.layout.places[out].address
    return code.emit_tiled(node, &walk, loop, addresses)


cdef bint is_like(Code code, int32_t x, Spec spec) except -1:
    """Return whether an operand, if contiguous, has the layout of a result."""
    return code.spec(x).size == spec.size and code.spec(x).itemsize == spec.itemsize


cdef int32_t converted(Code code, int32_t node, int32_t symbol, int type_num) except -1:
    """Emit a cast of an operand; return the temporary symbol of its result."""
    cdef Spec spec = code.spec(symbol)
    cdef int32_t temporary = code.new_symbol(converted_spec(spec, type_num))
    cdef uint64_t addresses[2]
    cdef Walk walk
    place_result(code, temporary, code.shows_item(symbol))
    if plan_result(code, temporary, &walk):
        addresses[0] = code.layout.places[symbol].address
        addresses[1] = code.layout.places[temporary].address
        code.join_place(&walk, symbol)
        code.join_place(&walk, temporary)
        code.emit_walk(node, &walk, cast_loop(spec.type_num, type_num), addresses)
    return temporary


cdef bint elementwise_of_three(Code code, int32_t node, Kernel kernel) except -1:
    """Emit a ufunc of three operands; return False to leave it to Python."""
    cdef Node* row = &code.graph.nodes[node]
    cdef Spec spec = code.spec(row.first_output)
    cdef Loop* loop = loop_of(kernel, spec.type_num, spec)
    cdef int32_t i
    if row.n_inputs != 3 or not spec.trainable or loop == NULL:
        return False
    if code.layout.places[row.first_output].kind != NOWHERE:
        return True  # it is fed
    for i in range(row.inputs, row.inputs + 3):
        if code.layout.places[code.graph.args[i]].kind == DEFERRED:
            code.settle(code.graph.args[i])
    return apply_to_three(code, node, loop, 0)


cdef bint apply_to_three(Code code, int32_t node, const Loop* loop, int first) except -1:
    """Emit a loop over three operands; those from `first` on have the result's dtype."""
    cdef const int32_t* operands = code.graph.args + code.graph.nodes[node].inputs
    cdef Spec spec = code.spec(code.graph.nodes[node].first_output)
    cdef int i
    if not spec.known:
        return False
    for i in range(3):
        if code.layout.places[operands[i]].kind != PLACED or not code.spec(operands[i]).known or (
                i >= first and code.spec(operands[i]).dtype != spec.dtype):
            return False
    return apply_by_walk(code, node, loop, operands, 3) == 0


cdef int place_result(Code code, int32_t out, bint of_items) except -1:
    if of_items and code.spec(out).nbytes > SMALL_BYTES:
        return code.place_item(out)
    return code.place_output(out)


cdef bint plan_result(Code code, int32_t out, Walk* walk) except -1:
    if code.layout.places[out].strides < 0:
        return plan(walk, code.spec(out))
    walk.n_axes = walk.n_operands = 0
    return True
