from cytape.ops.engine.index_op cimport find_region
from cytape.ops.calls.node_store cimport Node
from cytape.graph.passes.accumulation cimport n_places_of
from cytape.ops.kernels.ufunc_loops cimport copy_loop
from cytape.ops.kernels.moves cimport Region
from cytape.ops.kernels.walk cimport MAX_AXES, Walk, broadcast_strides, join_memory, plan
from cytape.ops.updates.update_op cimport SET, TAKE, UpdateOp, nothing
from cytape.tensor.values.spec cimport Spec, spec_of_dims
from cytape.tensor.tensor cimport Tensor
from cytape.tensor.values.value cimport array_of
from libc.stdint cimport uint64_t
from libc.string cimport memcmp, memset
from numpy cimport npy_intp

from .plan_layout cimport CONSTANT, memory_of
from .transfers cimport add, defer, is_placed, out_of_bounds, read, sum_up, take, write

from cytape.ops.creation import constant_op


cdef bint get_item(Code code, int32_t node, Op op) except -1:
    cdef int32_t x = code.graph.args[code.graph.nodes[node].inputs]
    cdef npy_intp strides[MAX_AXES]
    cdef Region region
    index = code.graph.attrs[node]["index"]
    if code.graph.nodes[node].n_inputs > 1:
        return read(code, node, index, 1, out_of_bounds)
    if not is_placed(code, x):
        return False
    if is_updated(code, x):
        return copy_region(code, node, index) or take(code, node, index)
    code.strides_of(x, strides)
    if not find_region(index, strides, code.spec(x), &region):
        return take(code, node, index)
    return code.view(
        code.graph.nodes[node].first_output, x, region.offset, region.strides) == 0


cdef bint index_add(Code code, int32_t node, Op op) except -1:
    cdef int32_t x = code.graph.args[code.graph.nodes[node].inputs]
    cdef int32_t out = code.graph.nodes[node].first_output
    cdef Spec spec = code.spec(x)
    cdef Region region
    index = code.graph.attrs[node]["index"]
    if n_places_of(code.graph, node):
        return add(code, node, index, 1, out_of_bounds, True)
    if not is_placed(code, x) or spec.type_num != code.spec(out).type_num:
        return False
    if not find_region(index, NULL, code.spec(out), &region):
        return sum_up(code, node, index)
    if region.ndim != spec.ndim or memcmp(
            region.dims, spec.dims, spec.ndim * sizeof(npy_intp)):
        return False
    code.layout.places[out].address = region.offset
    code.layout.places[out].strides = code.push(region.strides, spec.ndim)
    return defer(code, out, x, [])


cdef bint gather(Code code, int32_t node, Op op) except -1:
    index = index_along(code, node)
    return index is not None and take(code, node, index)


cdef bint scatter_add(Code code, int32_t node, Op op) except -1:
    index = index_along(code, node)
    return index is not None and sum_up(code, node, index)


cdef object index_along(Code code, int32_t node):
    """Return the index along an axis of the second input, None if the plan does not know it."""
    cdef int32_t places = code.graph.args[code.graph.nodes[node].inputs + 1]
    cdef int32_t source = code.graph.symbols[places].node
    cdef dict attrs = code.graph.attrs[node]
    if attrs["mode"] != "raise" or code.graph.ops[source] is not constant_op or (
            memory_of(code.layout.places[places].address) != CONSTANT):
        return None
    array = array_of((<Tensor?>code.graph.attrs[source]["value"]).held)
    return (slice(None),) * attrs["axis"] + (array,)


cdef bint update_part(Code code, int32_t node, Op op) except -1:
    cdef Node* row = &code.graph.nodes[node]
    cdef int kind = (<UpdateOp>op).kind
    cdef int32_t x = code.graph.args[row.inputs], out = row.first_output
    cdef int32_t part = code.graph.args[row.inputs + 1] if kind == SET else -1
    cdef Spec spec = code.spec(x), of_region
    cdef uint64_t addresses[2]
    cdef npy_intp strides[MAX_AXES]
    cdef Region region
    cdef Walk walk
    index = code.graph.attrs[node]["index"]
    if row.n_inputs > 1 + (kind == SET):
        return read(code, node, index, 1, out_of_bounds) if kind == TAKE else (
            write(code, node, index, 1 + (kind == SET), out_of_bounds))
    if not is_placed(code, x):
        return False
    if kind == TAKE:
        return copy_region(code, node, index)
    if spec is not code.spec(out) or not find_region(index, NULL, spec, &region):
        return False
    of_region = spec_of_dims(region.ndim, region.dims, spec.dtype)
    if part >= 0 and (
            not is_placed(code, part) or code.spec(part).type_num != spec.type_num
            or not broadcast_strides(code.spec(part), NULL, region.ndim, region.dims, strides)):
        return False
    code.place_over(node, out, x)
    if not plan(&walk, of_region):
        return True
    if part >= 0:
        addresses[0] = code.layout.places[part].address
        code.join_place(&walk, part)
    else:
        addresses[0] = <uint64_t>nothing()
        memset(strides, 0, sizeof(strides))
        join_memory(&walk, NULL, strides)
    addresses[1] = code.layout.places[out].address + region.offset
    join_memory(&walk, NULL, region.strides)
    return code.emit_walk(node, &walk, copy_loop(spec.itemsize), addresses) == 0


cdef bint copy_region(Code code, int32_t node, index) except -1:
    """Copy a region of an operand with any strides; return False for other indices."""
    cdef int32_t x = code.graph.args[code.graph.nodes[node].inputs]
    cdef int32_t out = code.graph.nodes[node].first_output
    cdef Spec spec = code.spec(out)
    cdef uint64_t addresses[2]
    cdef npy_intp strides[MAX_AXES]
    cdef Region region
    cdef Walk walk
    code.strides_of(x, strides)
    if not find_region(index, strides, code.spec(x), &region):
        return False
    code.place_output(out)
    if not plan(&walk, spec):
        return True
    addresses[0] = code.layout.places[x].address + region.offset
    addresses[1] = code.layout.places[out].address
    join_memory(&walk, NULL, region.strides)
    code.join_place(&walk, out)
    return code.emit_walk(node, &walk, copy_loop(spec.itemsize), addresses) == 0


cdef bint is_updated(Code code, int32_t symbol) except -1:
    """Return whether an operand is the result of an update, whose memory the next one reuses."""
    cdef object op = code.graph.ops[code.graph.symbols[symbol].node]
    return type(op) is UpdateOp and (<UpdateOp>op).kind == SET
