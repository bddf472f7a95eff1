cimport numpy as cnp
from cpython.ref cimport PyObject
from cytape.ops.calls.node_store cimport Node
from cytape.ops.engine.structural_op cimport StructuralOp
from cytape.ops.kernels.ufunc_loops cimport copy_loop
from cytape.ops.kernels.moves cimport Moves, can_sum
from cytape.ops.kernels.sums cimport add_loop_of
from cytape.ops.kernels.walk cimport MAX_AXES, Walk
from cytape.tensor.values.spec cimport Spec, scalar_spec
from cytape.tensor.values.value cimport Value, in_c_order, new_value
from libc.stdint cimport int32_t, uint64_t
from libc.string cimport memset
from numpy cimport npy_intp

from .instructions cimport LOOP, MULTIPLY_D, Instruction
from .plan_code cimport N_TEMPORARIES
from .plan_layout cimport NOWHERE, PLACED

cdef enum:
    FEW = 16  # operands of an op


cdef bint moved(Code code, int32_t node, Op op) except -1:
    """Emit a structural op: views of operands, or copies of regions into the outputs."""
    cdef Node* row = &code.graph.nodes[node]
    cdef const int32_t* inputs = code.graph.args + row.inputs
    cdef list operands = None
    cdef dict attrs = code.graph.attrs[node]
    cdef int32_t n_inputs = row.n_inputs
    cdef PyObject* specs[FEW]
    cdef Spec spec
    cdef StructuralOp moving = op
    cdef Moves moves
    cdef int32_t symbol, i, n_strided = 0
    cdef bint is_in_order
    if n_inputs > 1 and op.moving == 1:  # the second one only has the result's shape
        if row.n_outputs > 1:
            return False
        n_inputs, attrs = 1, {**attrs, "shape": code.spec(row.first_output).shape}
    for i in range(n_inputs):
        if code.layout.places[inputs[i]].kind != PLACED or not code.spec(inputs[i]).known:
            return False
        n_strided += code.layout.places[inputs[i]].strides >= 0
    for symbol in range(row.first_output, row.first_output + row.n_outputs):
        if code.layout.places[symbol].kind != NOWHERE or not code.spec(symbol).known:
            return False
    if n_strided or not 0 < n_inputs <= FEW:
        operands = [inputs[i] for i in range(n_inputs)]
        moves = moving.moves_of(layout_of_places(code, operands, n_strided > 0), attrs)
    else:
        for i in range(n_inputs):
            spec = code.spec(inputs[i])  # which the graph keeps
            specs[i] = <PyObject*>spec
        moves = moving.moves_in_order(specs, n_inputs, attrs)
    is_in_order = moves is None and 0 < n_strided <= N_TEMPORARIES
    if is_in_order:
        moves = moving.moves_of(tuple([code.spec(symbol) for symbol in operands]), attrs)
    if moves is None or n_strided and n_inputs == 1 and show_item(code, node, moves):
        return moves is not None
    if is_in_order:
        operands = [symbol if code.shows_item(symbol) else code.contiguous(node, symbol)
                    for symbol in operands]
    elif moves.are_views and not (code.copied and row.first_output in code.copied):
        for i in range(moves.n_moves):
            code.view(row.first_output + i, inputs[moves.moves[i].source],
                      moves.moves[i].read_offset, moves.moves[i].read_strides)
        return True
    if moves.sums and not can_sum(moves.targets[0]):
        code.release_temporaries()
        return False
    for i in range(row.n_outputs):
        code.place_output(row.first_output + i)
        if not (moves.fills or moves.begins_whole):
            code.emit_zero(node, code.layout.places[row.first_output + i].address,
                           code.spec(row.first_output + i).nbytes)
    for i in range(moves.n_moves):
        symbol = moves.moves[i].source
        emit_move(code, node, moves, i, inputs[symbol] if operands is None else operands[symbol])
    code.release_temporaries()
    return True


cdef bint are_views(Code code, list nodes) except -1:
    cdef int32_t node
    cdef int axis
    cdef Moves moves
    cdef Spec spec
    cdef const npy_intp* strides
    layout = (code.spec(code.graph.args[code.graph.nodes[<int32_t>nodes[0]].inputs]),)
    for node in nodes:
        moves = (<StructuralOp>code.graph.ops[node]).moves_of(layout, code.graph.attrs[node])
        if moves is None or not moves.are_views:
            return False
        spec, strides = <Spec>moves.targets[0], moves.moves[0].read_strides
        layout = (spec,)
        if not in_c_order(spec, strides):
            layout = (spec, None, tuple([strides[axis] for axis in range(spec.ndim)]))
    return True


cdef bint is_strided_view(Code code, int32_t node) except -1:
    cdef Moves moves
    cdef Node* row = &code.graph.nodes[node]
    if type(code.graph.ops[node]) is not StructuralOp or row.n_inputs != 1 or row.n_outputs != 1:
        return False
    moves = (<StructuralOp>code.graph.ops[node]).moves_of(
        (code.spec(code.graph.args[row.inputs]),), code.graph.attrs[node])
    return moves is not None and moves.are_views and not in_c_order(
        <Spec>moves.targets[0], moves.moves[0].read_strides)


cdef bint show_item(Code code, int32_t node, Moves moves) except -1:
    """Emit a uniform output for a uniform operand, if the moves allow it."""
    cdef Node* row = &code.graph.nodes[node]
    cdef int32_t x = code.graph.args[row.inputs], symbol
    cdef npy_intp no_strides[MAX_AXES]
    if not code.shows_item(x):
        return False
    if moves.fills:
        memset(no_strides, 0, sizeof(no_strides))
        for symbol in range(row.first_output, row.first_output + row.n_outputs):
            code.view(symbol, x, 0, no_strides)
        return True
    if moves.repeats == 0 or not can_sum(moves.targets[0]):
        return False
    return emit_multiple(code, node, x, moves.repeats) == 0


cdef int emit_multiple(Code code, int32_t node, int32_t x, npy_intp n) except -1:
    """Emit a uniform output: a multiple of a uniform operand's item."""
    cdef int32_t out = code.graph.nodes[node].first_output
    cdef Spec spec = code.spec(out)
    cdef Instruction* instruction
    cdef uint64_t address
    cdef Value factor
    code.place_item(out)
    address = code.layout.places[out].address
    if spec.type_num == cnp.NPY_DOUBLE:  # rounded once
        factor = new_value(scalar_spec(spec))
        (<double*>factor.data)[0] = n
        code.constants.append(factor)
        instruction = code.next(node, MULTIPLY_D)
        instruction.data[0] = factor.data
    else:
        code.emit_zero(node, address, spec.itemsize)
        instruction = code.next(node, LOOP)
        instruction.loop = add_loop_of(spec)
        instruction.geometry = code.linear(n, 0, 0, 0)
        instruction.data[0] = <char*>address
    instruction.data[1] = <char*>code.layout.places[x].address
    instruction.data[2] = <char*>address
    return 0


cdef tuple layout_of_places(Code code, list operands, bint strided):
    """Return the specs of operands; if some are strided, then strides, None for the others."""
    cdef npy_intp strides[MAX_AXES]
    cdef int32_t symbol
    cdef int axis
    cdef list layout = [code.spec(symbol) for symbol in operands]
    if strided:
        layout.append(None)
        for symbol in operands:
            if code.layout.places[symbol].strides < 0:
                layout.append(None)
                continue
            code.strides_of(symbol, strides)
            layout.append(tuple([strides[axis] for axis in range(code.spec(symbol).ndim)]))
    return tuple(layout)


cdef int emit_move(Code code, int32_t node, Moves moves, int move, int32_t operand) except -1:
    cdef int32_t out = code.graph.nodes[node].first_output + moves.moves[move].target
    cdef bint is_item = code.layout.places[operand].strides >= 0 and code.shows_item(operand)
    cdef uint64_t read = code.layout.places[operand].address
    cdef uint64_t write = code.layout.places[out].address + moves.moves[move].write_offset
    cdef uint64_t[3] addresses
    cdef bint adds = moves.sums and not (moves.begins_whole and move == 0)
    cdef Walk walk
    if not is_item:
        read += moves.moves[move].read_offset
    moves.join(&walk, move, NULL, NULL, adds, is_item)
    if adds:
        addresses[0], addresses[1], addresses[2] = write, read, write
        return code.emit_walk(node, &walk, add_loop_of(code.spec(out)), addresses)
    addresses[0], addresses[1] = read, write
    return code.emit_tiled(node, &walk, copy_loop(code.spec(out).itemsize), addresses)
