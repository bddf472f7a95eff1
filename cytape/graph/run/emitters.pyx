# Emitters of ops that are not elementwise. An emitter writes the instructions of a node and returns
# True, or returns False, with no effect, if Python must call the op: for dtypes without a loop,
# indices known only at run time, errors of any kind.

cimport numpy as cnp
from cytape.graph.passes.fused_op cimport LEAST_BLOCK, FusedOp
from cytape.ops.calls.dispatch cimport Lowering
from cytape.ops.calls.node_store cimport Node
from cytape.ops.kernels.ufunc_loops cimport kernel_of
from cytape.ops.kernels.dot_products cimport product_loop
from cytape.ops.kernels.where_loops cimport select_loop
from cytape.ops.kernels.walk cimport MAX_AXES
from cytape.tensor.values.spec cimport Spec, scalar_spec
from cytape.tensor.tensor cimport Tensor
from cytape.tensor.values.value cimport Value, value_of_array
from libc.stdint cimport uint64_t
from libc.string cimport memset
from numpy cimport ndarray, npy_intp

from .elementwise_ops cimport apply, apply_to_three, elementwise
from .instructions cimport FUSED, PRODUCT, Instruction, cast_loop
from .moved_ops cimport moved
from .part_ops cimport gather, get_item, index_add, scatter_add, update_part
from .plan_code cimport N_TEMPORARIES
from .plan_layout cimport (
    DEFERRED, NOWHERE, PLACED, SMALL_BYTES, STACKED, UNKNOWN, Place, is_plain_float)
from .stack_ops cimport unstacked
from .sum_ops cimport accumulated, add_n, add_terms, reduced

import numpy as np

from cytape.errors import GraphError

cnp.import_array()

cdef Emitter[<int>Lowering.N_LOWERINGS] emitters
memset(emitters, 0, sizeof(emitters))


cdef int emit_by(Lowering lowering, Emitter emitter) except -1:
    emitters[<int>lowering] = emitter
    return 0


cdef bint emit_special(Code code, int32_t node, Op op) except -1:
    cdef Emitter emitter = emitters[op.lowering]
    cdef Node* row = &code.graph.nodes[node]
    cdef int32_t i
    if emitter == NULL or row.n_outputs == 1 and op.lowering != Lowering.UNFED and (
            not code.spec(row.first_output).known):
        return False
    if code.layout.places[row.first_output].kind != NOWHERE:  # it is fed
        return row.n_outputs == 1
    for i in range(row.inputs, row.inputs + row.n_inputs):
        if code.layout.places[code.graph.args[i]].kind == DEFERRED:
            code.settle(code.graph.args[i])
    return emitter(code, node, op)


cdef bint by_loop(Code code, int32_t node, Op op) except -1:
    if op.stateful or code.graph.attrs[node] or op.forward.nin != (
            code.graph.nodes[node].n_inputs):
        return False
    return elementwise(code, node, kernel_of(op.forward))


cdef bint no_value(Code code, int32_t node, Op op) except -1:
    raise GraphError(
        f"{code.graph.describe(code.graph.nodes[node].first_output)} has no value: it is a "
        "placeholder that the fetched tensors need, so a value must be fed for it")


cdef bint constant(Code code, int32_t node, Op op) except -1:
    cdef int32_t symbol = code.graph.nodes[node].first_output
    cdef Value held = (<Tensor?>code.graph.attrs[node]["value"]).held
    place_constant(code, symbol, held)
    if not held.contiguous:
        code.layout.places[symbol].strides = code.push(
            cnp.PyArray_STRIDES(<ndarray>held.owner), held.spec.ndim)
    return True


cdef bint filled(Code code, int32_t node, Op op) except -1:
    """Zeros or ones, as a uniform value."""
    cdef int32_t symbol = code.graph.nodes[node].first_output
    cdef Spec spec = code.spec(symbol)
    cdef npy_intp no_strides[MAX_AXES]
    memset(no_strides, 0, sizeof(no_strides))
    number = np.full((), op.lowering == Lowering.ONES, spec.dtype)
    place_constant(code, symbol, value_of_array(number))
    code.layout.places[symbol].strides = code.push(no_strides, spec.ndim)
    return True


cdef int place_constant(Code code, int32_t symbol, Value held) except -1:
    cdef Place* place = &code.layout.places[symbol]
    code.constants.append(held)
    place.kind = PLACED
    place.root = symbol
    place.claims = 1
    place.nbytes = held.spec.nbytes
    place.address = <uint64_t>held.data
    place.strides = -1
    return 0


cdef bint shown(Code code, int32_t node, Op op) except -1:
    """Emit views of the inputs that the op returns unchanged."""
    cdef Node* row = &code.graph.nodes[node]
    cdef int32_t first = row.inputs + (
        op.shows if op.shows >= 0 else row.n_inputs - row.n_outputs), i, x
    cdef npy_intp strides[MAX_AXES]
    if row.n_inputs == 1 and code.layout.places[code.graph.args[first]].kind == STACKED:
        return unstacked(code, node)
    for i in range(row.inputs, row.inputs + row.n_inputs if op.shows >= 0 else 0):
        if not code.spec(code.graph.args[i]).known:  # the call may check extents
            return False
    for i in range(row.n_outputs):
        if code.layout.places[code.graph.args[first + i]].kind != PLACED or (
                code.layout.places[row.first_output + i].kind != NOWHERE
                or not code.spec(row.first_output + i).known):
            return False
    for i in range(row.n_outputs):
        x = code.graph.args[first + i]
        code.strides_of(x, strides)
        code.view(row.first_output + i, x, 0, strides)
    return True


cdef bint product(Code code, int32_t node, Op op) except -1:
    cdef Node* row = &code.graph.nodes[node]
    cdef int32_t out = row.first_output, i, symbol, copy
    cdef Spec spec = code.spec(out), left
    cdef bint outer
    cdef npy_intp n_stacked = 1
    cdef int axis, lead
    cdef npy_intp geometry[13]
    cdef npy_intp strides[MAX_AXES]
    cdef uint64_t addresses[2]
    cdef Instruction* instruction
    if row.n_inputs != 2 or code.graph.attrs[node] or not spec.known:
        return False
    left = code.spec(code.graph.args[row.inputs])
    lead = max(left.ndim, code.spec(code.graph.args[row.inputs + 1]).ndim) - 2
    for axis in range(lead):
        n_stacked *= spec.dims[axis]
    for i in range(2):
        symbol = code.graph.args[row.inputs + i]
        spec = code.spec(symbol)
        if (code.layout.places[symbol].kind in (UNKNOWN, NOWHERE) or not spec.known
                or spec.ndim < 1 or spec.size == 0 or not is_plain_float(spec)
                or spec.type_num != code.spec(out).type_num
                or n_matrices(spec) not in (1, n_stacked)):
            return False
    # The last axis of the left operand is summed over; outer products accept any strides.
    outer = left.dims[left.ndim - 1] == 1
    code.place_output(out)
    geometry[0] = n_stacked
    for i in range(2):
        symbol = code.graph.args[row.inputs + i]
        spec = code.spec(symbol)
        lead = max(spec.ndim - 2, 0)
        if code.layout.places[symbol].kind == DEFERRED:
            code.settle(symbol)
        code.strides_of(symbol, strides)
        addresses[i] = code.layout.places[symbol].address
        if not is_one_axis(lead, spec.dims, strides) or not outer and (
                not suits_products(spec, strides)):
            copy = code.new_temporary(spec)
            addresses[i] = code.layout.places[copy].address
            code.emit_copy(node, &code.layout.places[symbol], spec, addresses[i])
            code.strides_of(copy, strides)
        geometry[4 + i] = 0 if n_matrices(spec) == 1 else strides[lead - 1]
        if spec.ndim >= 2:
            geometry[1 + i], geometry[2 + i] = spec.dims[lead], spec.dims[lead + 1]
            geometry[7 + 2 * i], geometry[8 + 2 * i] = strides[lead], strides[lead + 1]
        elif i == 0:
            geometry[1], geometry[2] = 1, spec.dims[0]
            geometry[7], geometry[8] = strides[0] * spec.dims[0], strides[0]
        else:
            geometry[3] = 1
            geometry[9], geometry[10] = strides[0], spec.itemsize
    geometry[11] = geometry[3] * spec.itemsize
    geometry[12] = spec.itemsize
    geometry[6] = geometry[1] * geometry[11]
    instruction = code.next(node, PRODUCT)
    instruction.data[0] = <char*>addresses[0]
    instruction.data[1] = <char*>addresses[1]
    instruction.data[2] = <char*>code.layout.places[out].address
    instruction.loop = product_loop(spec.type_num, geometry[2])
    instruction.work = n_stacked * spec.itemsize * (geometry[1] * geometry[3] + (
        geometry[2] * geometry[3] + geometry[1] * geometry[2]))
    instruction.geometry = code.push(geometry, 13)
    code.release_temporaries()
    return True


cdef npy_intp n_matrices(Spec spec) noexcept:
    """Return the number of matrices in a stack, or of vectors if `n_core` is one."""
    cdef npy_intp n = 1
    cdef int axis
    for axis in range(spec.ndim - 2):
        n *= spec.dims[axis]
    return n


cdef bint is_one_axis(int n_axes, const npy_intp* dims, const npy_intp* strides) noexcept:
    """Return whether the first axes can be merged to one."""
    cdef int axis
    for axis in range(n_axes - 1):
        if strides[axis] != strides[axis + 1] * dims[axis + 1]:
            return False
    return True


cdef bint cast(Code code, int32_t node, Op op) except -1:
    cdef int32_t x = code.graph.args[code.graph.nodes[node].inputs]
    cdef Spec spec = code.spec(x), result = code.spec(code.graph.nodes[node].first_output)
    if code.layout.places[x].kind != PLACED or not result.known or not spec.known:
        return False
    if spec.type_num == result.type_num:
        return shown(code, node, op)
    if cast_loop(spec.type_num, result.type_num) == NULL:
        return False
    return apply(code, node, -1, cast_loop(spec.type_num, result.type_num), x, x) == 0


cdef bint part(Code code, int32_t node, Op op) except -1:
    """The real or imaginary part: of complex numbers every other element in memory."""
    cdef int32_t x = code.graph.args[code.graph.nodes[node].inputs]
    cdef int32_t out = code.graph.nodes[node].first_output
    cdef Spec spec = code.spec(x), result = code.spec(out)
    cdef npy_intp strides[MAX_AXES]
    cdef bint is_complex = spec.itemsize == 2 * result.itemsize
    if code.layout.places[x].kind != PLACED or not spec.known or code.graph.attrs[node] or (
            not is_plain_float(result) or not is_complex and spec.type_num != result.type_num):
        return False
    if op.lowering == Lowering.IMAGINARY_PART and not is_complex:
        code.place_output(out)
        return code.emit_zero(node, code.layout.places[out].address, result.nbytes) == 0
    code.strides_of(x, strides)
    return code.view(
        out, x, 0 if op.lowering == Lowering.REAL_PART else result.itemsize, strides) == 0


cdef bint group(Code code, int32_t node, Op op) except -1:
    """A FusedOp: one loop over operands that are contiguous or read block by block."""
    cdef FusedOp fused = op
    cdef Node* row = &code.graph.nodes[node]
    cdef list symbols = [code.graph.args[row.inputs + i] for i in range(row.n_inputs)]
    cdef list overwritable
    cdef dict layouts = {}
    cdef npy_intp strides[MAX_AXES]
    cdef int32_t symbol, i
    cdef int axis
    cdef npy_intp work = 0
    for i, symbol in enumerate(symbols):
        if code.layout.places[symbol].kind != PLACED or (
                code.spec(symbol) is not fused.operand_specs[i]):
            return False
    if sum([code.layout.places[<int32_t>one].strides >= 0 for one in symbols]) >= N_TEMPORARIES:
        return False
    for symbol in range(row.first_output, row.first_output + row.n_outputs):
        if code.layout.places[symbol].kind != NOWHERE or not code.spec(symbol).known:
            return False
    items = [i for i, symbol in enumerate(symbols)
             if code.spec(symbol).nbytes > SMALL_BYTES and code.shows_item(symbol)
             and code.spec(symbol).type_num != cnp.NPY_BOOL]
    for i, symbol in enumerate(symbols):
        if i not in items and suits_blocks(code, symbol, fused.shape):
            code.strides_of(symbol, strides)
            layouts[i] = [strides[axis] for axis in range(code.spec(symbol).ndim)]
    if items or layouts:
        specs = [scalar_spec(spec) if i in items else spec
                 for i, spec in enumerate(fused.operand_specs)]
        fused = FusedOp(fused.shape, specs, fused.calls, fused.results, layouts)
        code.constants.append(fused)
    symbols = [symbol if i in items or i in layouts else code.contiguous(node, symbol)
               for i, symbol in enumerate(symbols)]
    overwritable = [i for i in fused.overwritable if code.may_take_over(symbols[i], 1)]
    for i, symbol in enumerate(range(row.first_output, row.first_output + row.n_outputs)):
        for k in overwritable:
            if fused.free_from[<int32_t>k] <= fused.written_by[i] and (
                    code.take_over(symbol, symbols[k], 1)):
                overwritable.remove(k)
                break
        else:
            code.place_output(symbol)
        symbols.append(symbol)
    for symbol in symbols:
        work += code.spec(symbol).nbytes
    symbols.append(code.new_temporary(fused.scratch))
    code.emit_operands(node, FUSED, fused, symbols, work)
    code.release_temporaries()
    return True


cdef bint suits_blocks(Code code, int32_t symbol, Spec shape) except -1:
    """Return whether a strided operand is copied block by block: not if its runs are short."""
    cdef Spec spec = code.spec(symbol)
    return (code.layout.places[symbol].strides >= 0 and spec.type_num == shape.type_num
            and spec.dims[spec.ndim - 1] == shape.dims[shape.ndim - 1] >= LEAST_BLOCK)


cdef bint select(Code code, int32_t node, Op op) except -1:
    cdef Node* row = &code.graph.nodes[node]
    cdef Spec spec = code.spec(row.first_output)
    if row.n_inputs != 3 or select_loop(spec.itemsize) == NULL or code.graph.attrs[node] or (
            code.spec(code.graph.args[row.inputs]).type_num != cnp.NPY_BOOL):
        return False
    return apply_to_three(code, node, select_loop(spec.itemsize), 1)


cdef bint suits_products(Spec spec, npy_intp* strides) noexcept:
    """Return whether the loop of matmul can read matrices without a copy."""
    cdef int axis, first = max(spec.ndim - 2, 0)
    for axis in range(first, spec.ndim):
        if strides[axis] <= 0 and spec.dims[axis] != 1:
            return False
    if spec.ndim == 1:
        return True
    return strides[first + 1] == spec.itemsize or strides[first] == spec.itemsize


emit_by(Lowering.UNFED, no_value)
emit_by(Lowering.CONSTANT, constant)
emit_by(Lowering.ZEROS, filled)
emit_by(Lowering.ONES, filled)
emit_by(Lowering.LOOPED, by_loop)
emit_by(Lowering.FUSED, group)
emit_by(Lowering.ACCUMULATED, add_terms)
emit_by(Lowering.UPDATED, update_part)
emit_by(Lowering.MOVED, moved)
emit_by(Lowering.PRODUCT, product)
emit_by(Lowering.SELECTED, select)
emit_by(Lowering.SHOWN, shown)
emit_by(Lowering.CONVERTED, cast)
emit_by(Lowering.REAL_PART, part)
emit_by(Lowering.IMAGINARY_PART, part)
emit_by(Lowering.SUM, reduced)
emit_by(Lowering.MEAN, reduced)
emit_by(Lowering.REDUCED, reduced)
emit_by(Lowering.RUNNING, accumulated)
emit_by(Lowering.ADDED, add_n)
emit_by(Lowering.READ_PART, get_item)
emit_by(Lowering.ADD_PART, index_add)
emit_by(Lowering.GATHERED, gather)
emit_by(Lowering.SCATTERED, scatter_add)
