from cpython.exc cimport PyErr_SetString
from cytape.core.interrupts cimport INTERRUPTED
from cytape.graph.run.instructions cimport CONTROL
from cytape.graph.run.plan_code cimport N_TEMPORARIES
from cytape.graph.run.plan_compiler cimport compile
from cytape.graph.run.executable cimport Executable
from cytape.graph.run.plan_layout cimport EXTERNAL, NOWHERE, PLACED, STACKED, Place, memory_of
from cytape.ops.calls.node_store cimport Node
from cytape.tensor.values.spec cimport Spec, spec_of
from numpy cimport NPY_BOOL, NPY_INT64

from cytape.errors import GraphError
from cytape.graph.passes import optimise
from cytape.ops.adjoints.identity_groups import may_agree

cdef object graph_error = GraphError

cdef enum:
    MOST_CODES = 64   # of one body, for different shapes

cdef extern from "Python.h":
    int Py_EnterRecursiveCall(const char* where) except -1
    void Py_LeaveRecursiveCall() noexcept


cdef Code nested_code(body, list specs, tuple owned, int n_fresh, int n_movable):
    cdef Executable executable = body.executable
    cdef Code code = None
    cdef tuple key = (tuple(specs), owned, n_fresh, n_movable)
    if executable.nested is None:
        executable.nested = {}
    elif key in executable.nested:
        return executable.nested[key]
    Py_EnterRecursiveCall(b" while a body is compiled")
    try:
        code = compiled(executable.subgraph, specs, owned, n_fresh, n_movable)
    finally:
        Py_LeaveRecursiveCall()
    if len(executable.nested) == MOST_CODES:
        executable.nested.clear()
    executable.nested[key] = code
    return code


cdef Code compiled(subgraph, list specs, tuple owned, int n_fresh, int n_movable):
    cdef Code code
    cdef Spec declared, spec
    cdef list known = []
    cdef index_t i
    if subgraph.keep or len(subgraph.feeds) != len(specs):
        return None
    for symbol, operand in zip(subgraph.feeds, specs):
        declared = subgraph.graph.spec_of(symbol)
        is_stack = type(operand) is tuple
        spec = operand[0] if is_stack else operand
        if declared.dtype != spec.dtype:
            return None
        if is_stack and (declared.known or not declared.shape or declared.shape[1:] != spec.shape):
            return None
        if not is_stack and declared is not spec and (
                declared.known or not may_agree(declared.shape, spec.shape)):
            return None
        known.append(declared if is_stack else spec)
    try:
        subgraph = optimise(subgraph, known)
    except Exception:  # shapes may be inconsistent in a body that never runs
        return None
    code = Code(subgraph, True, owned, n_fresh, n_movable)
    compile(code, ())
    for i in range(code.n_spans):
        if code.spans[i].is_call:
            return None
    return code


cdef object rows_of(Code code, int32_t symbol):
    cdef object shape = code.spec(symbol).shape
    if not shape or None in shape[1:]:
        return False
    return (spec_of(tuple(shape[1:]), code.spec(symbol).dtype),)


cdef object operand_spec(Code code, int32_t symbol):
    if code.layout.places[symbol].kind == STACKED:
        return rows_of(code, symbol)
    return code.spec(symbol)


cdef bint is_predicate(Code condition) except -1:
    cdef Spec spec = condition.spec(condition.fetches[0])
    return spec.type_num == NPY_BOOL and spec.size == 1


cdef object row_spec(Code code, int32_t symbol, bint is_ragged):
    """Return the spec of a stack's slices, in a tuple if these are stacks; False if unknown."""
    cdef object rows = rows_of(code, symbol)
    return rows if is_ragged or rows is False else rows[0]


cdef npy_intp row_bytes_of(Spec spec) except -1:
    cdef npy_intp nbytes = spec.itemsize
    for extent in list(spec.shape)[1:]:
        nbytes *= extent
    return nbytes


cdef tuple rows_at(Code code, int32_t symbol):
    cdef Place* place = &code.layout.places[symbol]
    cdef Spec spec = code.spec(symbol)
    is_stack = place.kind == STACKED
    return is_stack, place.uses == 1, row_bytes_of(spec), 0 if is_stack else spec.dims[0]


cdef Frame new_frame(Code code, Piece* piece):
    cdef Frame frame = Frame(code)
    piece.instructions = frame.instructions
    piece.pool = code.pool
    piece.n_code = code.n_code
    piece.effort = code.effort
    piece.stacks, piece.n_stacks = frame.stacks, frame.n_stacks
    return frame


cdef int feed_port(Frame frame, Port* port, int k) except -1:
    cdef int32_t symbol = frame.code.feeds[k]
    cdef Place* place = &frame.code.layout.places[symbol]
    patched_port(frame, port, k)
    if memory_of(place.address) != EXTERNAL:
        port.slot = frame.resolved(place.address)
        port.nbytes = place.nbytes
        port.is_stack = place.kind == STACKED
    return 0


cdef int fetch_port(Frame frame, Port* port, int k) except -1:
    cdef int32_t symbol = frame.code.fetches[k]
    cdef Place* place = &frame.code.layout.places[symbol]
    patched_port(frame, port, <int>len(frame.code.feeds) + k)
    port.nbytes = frame.code.spec(symbol).nbytes
    if place.kind == STACKED:
        port.slot = frame.resolved(place.address)
        port.is_stack = True
    return 0


cdef void patched_port(Frame frame, Port* port, int external) noexcept:
    port.slot = NULL
    port.nbytes = 0
    port.is_stack = False
    port.patches = frame.patches + frame.first_patch[external]
    port.n_patches = frame.first_patch[external + 1] - frame.first_patch[external]
    port.instructions = frame.instructions


cdef int count_part(Subprogram program, Code part) except -1:
    program.nbytes += (
        part.layout.small_bytes + part.layout.large_bytes
        + 2 * part.n_code * <Py_ssize_t>sizeof(Instruction)
        + part.n_pool * <Py_ssize_t>sizeof(npy_intp))
    for inner in part.subprograms:
        program.nbytes += inner.nbytes
    program.peak_bytes = max(program.peak_bytes, part.peak_bytes)
    return 0


cdef bint is_count(Code code, int32_t symbol) except -1:
    return code.spec(symbol).type_num == NPY_INT64 and code.spec(symbol).size == 1


cdef list operands_of(Code code, int32_t node):
    cdef Node* row = &code.graph.nodes[node]
    cdef list symbols = [code.graph.args[row.inputs + i] for i in range(row.n_inputs)]
    cdef Place* place
    cdef int32_t symbol, n_copies = 0
    for symbol in symbols:
        place = &code.layout.places[symbol]
        if place.kind != STACKED and (place.kind != PLACED or not code.spec(symbol).known):
            return None
        n_copies += place.kind == PLACED and place.strides >= 0
    for symbol in range(row.first_output, row.first_output + row.n_outputs):
        if code.layout.places[symbol].kind != NOWHERE:  # it is fed
            return None
    if n_copies > N_TEMPORARIES:
        return None
    return symbols


cdef bint emit_program(Code code, int32_t node, Subprogram program, list symbols,
                       npy_intp effort) except -1:
    cdef Node* row = &code.graph.nodes[node]
    symbols = [symbol if code.layout.places[<int32_t>symbol].kind == STACKED else
               code.contiguous(node, symbol) for symbol in symbols]
    symbols += range(row.first_output, row.first_output + row.n_outputs)
    code.subprograms.append(program)
    code.emit_operands(node, CONTROL, program, symbols, effort)
    code.release_temporaries()
    return True


cdef int no_such_row() noexcept with gil:
    PyErr_SetString(graph_error, b"a loop takes more slices of a stack than there are")
    return INTERRUPTED
