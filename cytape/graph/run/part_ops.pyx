from cytape.ops.engine.index_op cimport find_region
from cytape.ops.engine.node_store cimport Node
from cytape.ops.kernels.loops cimport copy_loop
from cytape.ops.kernels.moves cimport Region
from cytape.ops.kernels.walk cimport MAX_AXES, Walk, join_memory, plan
from cytape.ops.updates.update_op cimport CLEAR, SET, UpdateOp, nothing
from cytape.tensor.spec cimport Spec, spec_of_dims
from libc.stdint cimport uint64_t
from libc.string cimport memset
from numpy cimport npy_intp

from .layout cimport NOWHERE, PLACED
from .sum_ops cimport broadcasts


cdef bint is_updated(Code code, int32_t symbol) except -1:
    cdef object op = code.graph.ops[code.graph.symbols[symbol].node]
    return type(op) is UpdateOp and (<UpdateOp>op).kind == SET


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
    if code.layout.places[x].kind != PLACED or code.layout.places[out].kind != NOWHERE or (
            not spec.known):
        return False
    if kind != SET and kind != CLEAR:
        return copy_region(code, node, index)
    if spec is not code.spec(out) or not find_region(index, NULL, spec, &region):
        return False
    of_region = spec_of_dims(region.ndim, region.dims, spec.dtype)
    if part >= 0 and (
            code.layout.places[part].kind != PLACED or not code.spec(part).known
            or code.spec(part).type_num != spec.type_num
            or not broadcasts(code.spec(part), of_region)):
        return False
    if not code.take_over(out, x, 1):
        code.place_output(out)
        code.emit_copy(node, &code.layout.places[x], spec, code.layout.places[out].address)
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
    cdef int32_t x = code.graph.args[code.graph.nodes[node].inputs]
    cdef int32_t out = code.graph.nodes[node].first_output
    cdef Spec spec = code.spec(out)
    cdef uint64_t addresses[2]
    cdef npy_intp strides[MAX_AXES]
    cdef Region region
    cdef Walk walk
    code.strides_of(x, strides)
    if not spec.known or not find_region(index, strides, code.spec(x), &region):
        return False
    code.place_output(out)
    if not plan(&walk, spec):
        return True
    addresses[0] = code.layout.places[x].address + region.offset
    addresses[1] = code.layout.places[out].address
    join_memory(&walk, NULL, region.strides)
    code.join_place(&walk, out)
    return code.emit_walk(node, &walk, copy_loop(spec.itemsize), addresses) == 0
