cimport numpy as cnp
from cytape.graph.passes.accumulate_op cimport AccumulateOp
from cytape.ops.engine.index_op cimport find_region
from cytape.ops.engine.node_store cimport Node
from cytape.ops.engine.sum_op cimport SumOp, axes_of
from cytape.ops.kernels.loops cimport N_TYPES, Kernel, copy_loop, kernel_of
from cytape.ops.kernels.moves cimport Region
from cytape.ops.kernels.walk cimport MAX_AXES, Walk, join_memory, order_axes, plan
from cytape.tensor.spec cimport spec_of_dims
from libc.stdint cimport uint64_t
from numpy cimport npy_intp

from .elementwise_ops cimport place_result, plan_result
from .instructions cimport LOOP, Instruction, mean_loop
from .layout cimport DEFERRED, PLACED, UNKNOWN, is_plain_float

cdef Op cumsum_op, max_op

import numpy as np

from cytape.ops.products import cumsum_op
from cytape.ops.reductions import max_op

cdef Kernel add_kernel = kernel_of(np.add), multiply_kernel = kernel_of(np.multiply)
cdef double ONE_D = 1.0
cdef float ONE_F = 1.0
cdef npy_intp[MAX_AXES] NO_STRIDES


cdef bint total(Code code, int32_t node, Op op) except -1:
    cdef int32_t x = code.graph.args[code.graph.nodes[node].inputs]
    cdef int32_t out = code.graph.nodes[node].first_output
    cdef Spec spec = code.spec(x), result = code.spec(out)
    cdef npy_intp strides[MAX_AXES]
    cdef dict attrs = code.graph.attrs[node]
    cdef uint64_t axes
    cdef bint is_mean = (<SumOp?>op).is_mean
    if (not result.known or result.type_num != spec.type_num
            or attrs.get("dtype") is not None or not axes_of(attrs["axis"], spec, &axes)
            or is_mean and (spec.size == 0 or not is_plain_float(spec))):
        return False
    strides_without(axes, spec, strides)
    return add_up(code, node, strides, is_mean) == 0 if can_add_up(code, x) else False


cdef void strides_without(uint64_t axes, Spec spec, npy_intp* strides) noexcept:
    """Those of a result, 0 along the axes that go."""
    cdef npy_intp stride = spec.itemsize
    cdef int axis
    for axis in range(spec.ndim - 1, -1, -1):
        strides[axis] = 0
        if not axes >> axis & 1:
            strides[axis] = stride
            stride *= spec.dims[axis]


cdef bint sum_to(Code code, int32_t node, Op op) except -1:
    cdef int32_t x = code.graph.args[code.graph.nodes[node].inputs]
    cdef int32_t out = code.graph.nodes[node].first_output
    cdef Spec spec = code.spec(x), result = code.spec(out)
    cdef npy_intp strides[MAX_AXES]
    cdef npy_intp stride
    cdef int axis, lead
    if (not can_add_up(code, x) or not broadcasts(result, spec)
            or result.type_num != spec.type_num or spec.type_num == cnp.NPY_FLOAT16):
        return False  # halves are summed as floats
    stride = spec.itemsize
    lead = spec.ndim - result.ndim
    for axis in range(spec.ndim - 1, -1, -1):
        strides[axis] = 0
        if axis >= lead and result.dims[axis - lead] != 1:
            strides[axis] = stride
            stride *= result.dims[axis - lead]
    return add_up(code, node, strides, False) == 0


cdef bint broadcasts(Spec a, Spec b) noexcept:
    """Whether one shape certainly broadcasts to the other; what does not is left to NumPy."""
    cdef int axis, lead = b.ndim - a.ndim
    if not (a.known and b.known) or lead < 0:
        return False
    for axis in range(a.ndim):
        if a.dims[axis] != 1 and a.dims[axis] != b.dims[lead + axis]:
            return False
    return True


cdef bint can_add_up(Code code, int32_t x) except -1:
    cdef Spec spec = code.spec(x)
    if not spec.known or not spec.trainable or spec.type_num >= N_TYPES or (
            code.layout.places[x].kind == UNKNOWN):
        return False
    if code.layout.places[x].kind == DEFERRED:
        code.settle(x)
    return True


cdef int add_up(Code code, int32_t node, npy_intp* strides, bint is_mean) except -1:
    """Sum into an output that has such strides, 0 along the axes that are summed over."""
    cdef int32_t x = code.graph.args[code.graph.nodes[node].inputs]
    cdef int32_t out = code.graph.nodes[node].first_output
    cdef Spec spec = code.spec(x), result = code.spec(out)
    cdef Instruction* instruction
    cdef uint64_t addresses[3]
    cdef Walk walk
    code.place_output(out)
    addresses[0] = addresses[2] = code.layout.places[out].address
    addresses[1] = code.layout.places[x].address
    code.emit_zero(node, addresses[0], result.nbytes)
    if not plan(&walk, spec):
        return 0
    join_memory(&walk, NULL, strides)
    code.join_place(&walk, x)
    join_memory(&walk, NULL, strides)
    order_axes(&walk, 1)  # as NumPy does
    code.emit_walk(node, &walk, &add_kernel.loops[spec.type_num], addresses)
    if is_mean:
        instruction = code.next(node, LOOP)
        instruction.data[0] = instruction.data[1] = <char*>addresses[0]
        instruction.loop = mean_loop(spec.type_num)
        instruction.geometry = code.linear(
            result.size, spec.itemsize, spec.itemsize, spec.size // result.size)
        instruction.work = 2 * result.nbytes
    return 0


cdef bint add_n(Code code, int32_t node, Op op) except -1:
    """The sum of terms of one spec, from left to right."""
    cdef Node* row = &code.graph.nodes[node]
    cdef int32_t out = row.first_output, symbol, i
    cdef Spec spec = code.spec(out)
    cdef bint of_items = True
    cdef uint64_t[3] addresses
    cdef Walk walk
    if row.n_inputs < 2 or not spec.known or spec.type_num >= N_TYPES or (
            add_kernel.loops[spec.type_num].function == NULL):
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
    """Add the terms of an AccumulateOp one by one, each from where it lies."""
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
    if not first or not code.take_over(out, terms[0], 1):
        code.place_output(out)
    addresses[2] = code.layout.places[out].address
    if not first:
        code.emit_zero(node, addresses[2], spec.nbytes)
    elif code.layout.places[terms[0]].address != addresses[2]:
        code.emit_copy(node, &code.layout.places[terms[0]], code.spec(terms[0]), addresses[2])
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


cdef bint extremum(Code code, int32_t node, Op op) except -1:
    """The first elements along the axes, compared with all."""
    cdef int32_t x = code.graph.args[code.graph.nodes[node].inputs]
    cdef int32_t out = code.graph.nodes[node].first_output
    cdef Spec spec = code.spec(x), result = code.spec(out)
    cdef npy_intp strides[MAX_AXES]
    cdef npy_intp own[MAX_AXES]
    cdef dict attrs = code.graph.attrs[node]
    cdef uint64_t axes
    cdef uint64_t addresses[3]
    cdef Kernel kernel = kernel_of(np.maximum if op is max_op else np.minimum)
    cdef Walk walk
    cdef int axis
    if (not can_add_up(code, x) or not result.known or result.type_num != spec.type_num
            or len(attrs) > 2 or spec.size == 0 or not axes_of(attrs["axis"], spec, &axes)):
        return False
    code.place_output(out)
    strides_without(axes, spec, strides)
    plan(&walk, spec)
    for axis in range(spec.ndim):
        if axes >> axis & 1:
            walk.extents[axis] = 1
    code.strides_of(x, own)
    join_memory(&walk, NULL, own)
    join_memory(&walk, NULL, strides)
    addresses[0] = addresses[1] = code.layout.places[x].address
    addresses[1] = addresses[2] = code.layout.places[out].address
    code.emit_walk(node, &walk, copy_loop(spec.itemsize), addresses)
    plan(&walk, spec)
    join_memory(&walk, NULL, strides)
    code.join_place(&walk, x)
    join_memory(&walk, NULL, strides)
    addresses[0], addresses[1] = addresses[1], addresses[0]
    return code.emit_walk(node, &walk, &kernel.loops[spec.type_num], addresses) == 0


cdef bint multiplied(Code code, int32_t node, Op op) except -1:
    """Ones, multiplied by all elements along the axes."""
    cdef int32_t x = code.graph.args[code.graph.nodes[node].inputs]
    cdef int32_t out = code.graph.nodes[node].first_output
    cdef Spec spec = code.spec(x), result = code.spec(out)
    cdef npy_intp strides[MAX_AXES]
    cdef dict attrs = code.graph.attrs[node]
    cdef uint64_t axes
    cdef uint64_t addresses[3]
    cdef Walk walk
    if (not can_add_up(code, x) or not is_plain_float(spec) or not result.known
            or result.type_num != spec.type_num or len(attrs) > 3
            or not axes_of(attrs["axis"], spec, &axes)):
        return False
    code.place_output(out)
    if plan(&walk, result):
        addresses[0] = <uint64_t>&ONE_D if spec.type_num == cnp.NPY_DOUBLE else <uint64_t>&ONE_F
        addresses[1] = code.layout.places[out].address
        strides_without(0, result, strides)
        join_memory(&walk, NULL, NO_STRIDES)
        join_memory(&walk, NULL, strides)
        code.emit_walk(node, &walk, copy_loop(spec.itemsize), addresses)
    if plan(&walk, spec):
        addresses[0] = addresses[2] = code.layout.places[out].address
        addresses[1] = code.layout.places[x].address
        strides_without(axes, spec, strides)
        join_memory(&walk, NULL, strides)
        code.join_place(&walk, x)
        join_memory(&walk, NULL, strides)
        code.emit_walk(node, &walk, &multiply_kernel.loops[spec.type_num], addresses)
    return True


cdef bint accumulated(Code code, int32_t node, Op op) except -1:
    """Each element added to, or multiplied by, what is before it in the output."""
    cdef int32_t x = code.graph.args[code.graph.nodes[node].inputs]
    cdef int32_t out = code.graph.nodes[node].first_output
    cdef Spec spec = code.spec(x)
    cdef npy_intp strides[MAX_AXES]
    cdef npy_intp own[MAX_AXES]
    cdef dict attrs = code.graph.attrs[node]
    cdef uint64_t addresses[3]
    cdef Kernel kernel = add_kernel if op is cumsum_op else multiply_kernel
    cdef Walk walk
    cdef int axis
    if (not can_add_up(code, x) or not is_plain_float(spec) or spec is not code.spec(out)
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
    walk.extents[axis] = 1
    join_memory(&walk, NULL, own)
    join_memory(&walk, NULL, strides)
    code.emit_walk(node, &walk, copy_loop(spec.itemsize), addresses)
    if spec.dims[axis] == 1:
        return True
    plan(&walk, spec)
    walk.extents[axis] -= 1
    join_memory(&walk, NULL, strides)
    join_memory(&walk, NULL, own)
    join_memory(&walk, NULL, strides)
    addresses[0], addresses[1] = addresses[1], addresses[0] + <uint64_t>own[axis]
    addresses[2] = addresses[0] + <uint64_t>strides[axis]
    return code.emit_walk(node, &walk, &kernel.loops[spec.type_num], addresses) == 0
