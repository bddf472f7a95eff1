cimport numpy as cnp
from cytape.graph.passes.accumulate_op cimport AccumulateOp
from cytape.ops.engine.index_op cimport find_region
from cytape.ops.calls.node_store cimport Node
from cytape.ops.calls.dispatch cimport Lowering
from cytape.ops.engine.sum_op cimport axes_of
from cytape.ops.kernels.ufunc_loops cimport N_TYPES, Kernel, copy_loop, kernel_of
from cytape.ops.kernels.moves cimport Region
from cytape.ops.kernels.walk cimport (
    MAX_AXES, Walk, broadcast_strides, join_memory, order_axes, plan)
from cytape.tensor.values.spec cimport Spec, spec_of_dims
from libc.stdint cimport uint64_t
from numpy cimport npy_intp

from .elementwise_ops cimport place_result, plan_result
from .instructions cimport LOOP, Instruction, mean_loop
from .plan_layout cimport PLACED, is_plain_float

import numpy as np

cdef Kernel add_kernel = kernel_of(np.add), multiply_kernel = kernel_of(np.multiply)
cdef double ONE_D = 1.0
cdef float ONE_F = 1.0
cdef npy_intp[MAX_AXES] NO_STRIDES


cdef bint reduced(Code code, int32_t node, Op op) except -1:
    """Emit a sum, mean, product or extremum along axes."""
    cdef int32_t x = code.graph.args[code.graph.nodes[node].inputs]
    cdef int32_t out = code.graph.nodes[node].first_output
    cdef Spec spec = code.spec(x), result = code.spec(out)
    cdef Kernel kernel = add_kernel if op.ufunc is None else kernel_of(op.ufunc)
    cdef bint is_mean = op.lowering == Lowering.MEAN, is_product = kernel is multiply_kernel
    cdef bint is_extremum = not is_product and kernel is not add_kernel
    cdef npy_intp strides[MAX_AXES]
    cdef npy_intp own[MAX_AXES]
    cdef uint64_t addresses[3]
    cdef uint64_t axes
    cdef Instruction* instruction
    cdef Walk walk
    if (not has_loops(code, x) or not result.known or result.type_num != spec.type_num
            or not strides_of_result(code.graph.attrs[node], spec, result, &axes, strides)
            or (is_mean or is_product) and not is_plain_float(spec)
            or (is_mean or is_extremum) and spec.size == 0):
        return False
    code.place_output(out)
    addresses[0] = code.layout.places[x].address
    addresses[1] = addresses[2] = code.layout.places[out].address
    code.strides_of(x, own)
    if is_extremum:
        copy_first(code, node, spec, axes, addresses, own, strides)
    elif not is_product:
        code.emit_zero(node, addresses[1], result.nbytes)
    elif result.size:
        addresses[0] = <uint64_t>&ONE_D if spec.type_num == cnp.NPY_DOUBLE else <uint64_t>&ONE_F
        copy_first(code, node, spec, axes, addresses, NO_STRIDES, strides)
    if not plan(&walk, spec):
        return True
    join_memory(&walk, NULL, strides)
    join_memory(&walk, NULL, own)
    join_memory(&walk, NULL, strides)
    if kernel is add_kernel:
        order_axes(&walk, 1)  # as NumPy does
    addresses[0], addresses[1] = addresses[2], code.layout.places[x].address
    code.emit_walk(node, &walk, &kernel.loops[spec.type_num], addresses)
    if is_mean:
        instruction = code.next(node, LOOP)
        instruction.data[0] = instruction.data[1] = <char*>addresses[0]
        instruction.loop = mean_loop(spec.type_num)
        instruction.geometry = code.linear(
            result.size, spec.itemsize, spec.itemsize, spec.size // result.size)
        instruction.work = 2 * result.nbytes
    return True


cdef bint has_loops(Code code, int32_t x) except -1:
    """Return whether an operand has an address and a dtype whose loops raise no errors."""
    cdef Spec spec = code.spec(x)
    return (spec.known and spec.trainable and spec.type_num < N_TYPES
            and code.layout.places[x].kind == PLACED)


cdef bint strides_of_result(dict attrs, Spec spec, Spec result, uint64_t* axes,
                            npy_intp* strides) except -1:
    """Find the strides of a result that is broadcast to the operand, and the reduced axes.

    Return False if NumPy must be called.
    """
    if "axis" not in attrs:  # sum to a shape; half precision is summed in single precision
        return spec.type_num != cnp.NPY_FLOAT16 and broadcast_strides(
            result, NULL, spec.ndim, spec.dims, strides)
    if len(attrs) > 2 + ("dtype" in attrs) or not axes_of(attrs["axis"], spec, axes):
        return False
    strides_without(axes[0], spec, strides)
    return True


cdef void strides_without(uint64_t axes, Spec spec, npy_intp* strides) noexcept:
    """Find the strides of a contiguous array that is broadcast along some axes."""
    cdef npy_intp stride = spec.itemsize
    cdef int axis
    for axis in range(spec.ndim - 1, -1, -1):
        strides[axis] = 0
        if not axes >> axis & 1:
            strides[axis] = stride
            stride *= spec.dims[axis]


cdef int copy_first(Code code, int32_t node, Spec spec, uint64_t axes, uint64_t* addresses,
                    const npy_intp* strides, const npy_intp* result_strides) except -1:
    """Emit a copy of the first elements along axes to the result; addresses: operand, result."""
    cdef Walk walk
    cdef int axis
    walk.n_axes, walk.n_operands = spec.ndim, 0
    for axis in range(spec.ndim):
        walk.extents[axis] = 1 if axes >> axis & 1 else spec.dims[axis]
    join_memory(&walk, NULL, strides)
    join_memory(&walk, NULL, result_strides)
    return code.emit_walk(node, &walk, copy_loop(spec.itemsize), addresses)


cdef bint add_n(Code code, int32_t node, Op op) except -1:
    """Emit the sum of terms of one spec, from left to right."""
    cdef Node* row = &code.graph.nodes[node]
    cdef int32_t out = row.first_output, symbol, i
    cdef Spec spec = code.spec(out)
    cdef bint of_items = True
    cdef uint64_t[3] addresses
    cdef Walk walk
    if row.n_inputs < 2 or not spec.known or spec.type_num >= N_TYPES or (
            add_kernel.loops[spec.type_num].function == NULL) or (
            spec.type_num == cnp.NPY_FLOAT16 and row.n_inputs > 2):  # the op rounds once
        return False
    for i in range(row.inputs, row.inputs + row.n_inputs):
        symbol = code.graph.args[i]
        if code.layout.places[symbol].kind != PLACED or code.spec(symbol) is not spec:
            return False
        of_items &= code.shows_item(symbol)
    symbol = code.graph.args[row.inputs]
    if not code.take_over(out, symbol, 1):
        place_result(code, out, of_items)
    for i in range(row.inputs + 1, row.inputs + row.n_inputs):
        if not plan_result(code, out, &walk):
            return True
        code.join_place(&walk, symbol)
        code.join_place(&walk, code.graph.args[i])
        code.join_place(&walk, out)
        addresses[0] = code.layout.places[symbol].address
        addresses[1] = code.layout.places[code.graph.args[i]].address
        addresses[2] = code.layout.places[out].address
        code.emit_walk(node, &walk, &add_kernel.loops[spec.type_num], addresses)
        symbol = out
    return True


cdef bint add_terms(Code code, int32_t node, Op op) except -1:
    """Emit the additions of an AccumulateOp, term by term, without copies."""
    cdef AccumulateOp sum_of_parts = op
    cdef Spec spec = sum_of_parts.spec
    cdef Node* row = &code.graph.nodes[node]
    cdef int32_t out = row.first_output, symbol, i
    cdef int first = sum_of_parts.first_is_all
    cdef const int32_t* terms = code.graph.args + row.inputs
    cdef uint64_t addresses[3]
    cdef Region region
    cdef Walk walk
    for i in range(row.n_inputs):
        if code.layout.places[terms[i]].kind != PLACED or (
                code.spec(terms[i]) is not sum_of_parts.operand_specs[i]):
            return False
    if first:
        code.place_over(node, out, terms[0])
    else:
        code.place_output(out)
        code.emit_zero(node, code.layout.places[out].address, spec.nbytes)
    for i in range(first, row.n_inputs):
        symbol, index = terms[i], sum_of_parts.indices[i]
        find_region(Ellipsis if index is None else index, NULL, spec, &region)
        if not plan(&walk, spec_of_dims(region.ndim, region.dims, spec.dtype)):
            continue
        addresses[0] = addresses[2] = code.layout.places[out].address + <uint64_t>region.offset
        addresses[1] = code.layout.places[symbol].address
        join_memory(&walk, NULL, region.strides)
        code.join_place(&walk, symbol)
        join_memory(&walk, NULL, region.strides)
        code.emit_walk(node, &walk, &add_kernel.loops[spec.type_num], addresses)
    return True


cdef bint accumulated(Code code, int32_t node, Op op) except -1:
    """Emit a cumulative sum or product."""
    cdef int32_t x = code.graph.args[code.graph.nodes[node].inputs]
    cdef int32_t out = code.graph.nodes[node].first_output
    cdef Spec spec = code.spec(x)
    cdef npy_intp strides[MAX_AXES]
    cdef npy_intp own[MAX_AXES]
    cdef dict attrs = code.graph.attrs[node]
    cdef uint64_t addresses[3]
    cdef Kernel kernel = kernel_of(op.ufunc)
    cdef Walk walk
    cdef int axis
    if (not has_loops(code, x) or not is_plain_float(spec) or spec is not code.spec(out)
            or len(attrs) > 2 or not spec.ndim):
        return False
    axis = attrs["axis"]
    axis += spec.ndim if axis < 0 else 0
    code.place_output(out)
    if not plan(&walk, spec):
        return True
    strides_without(0, spec, strides)
    code.strides_of(x, own)
    addresses[0] = code.layout.places[x].address
    addresses[1] = code.layout.places[out].address
    copy_first(code, node, spec, <uint64_t>1 << axis, addresses, own, strides)
    if spec.dims[axis] == 1:
        return True
    walk.extents[axis] -= 1
    join_memory(&walk, NULL, strides)
    join_memory(&walk, NULL, own)
    join_memory(&walk, NULL, strides)
    addresses[0], addresses[1] = addresses[1], addresses[0] + <uint64_t>own[axis]
    addresses[2] = addresses[0] + <uint64_t>strides[axis]
    return code.emit_walk(node, &walk, &kernel.loops[spec.type_num], addresses) == 0
