from cpython.ref cimport PyObject
from cytape.core.interrupts cimport OP_EFFORT, effort_so_far, spend
from cytape.core.memory cimport grow
from cytape.core.typedefs cimport index_t
from cytape.graph.passes.accumulate_op cimport AccumulateOp
from cytape.graph.passes.early_sums cimport LARGE as LARGE_ARRAY
from cytape.graph.passes.fused_op cimport FusedOp
from cytape.ops.calls.dispatch cimport Lowering, Op
from cytape.ops.engine.elementwise_op cimport ElementwiseOp
from cytape.ops.calls.node_store cimport Node
from cytape.ops.engine.structural_op cimport StructuralOp
from cytape.ops.calls.symbolic cimport SymbolicGraph
from cytape.ops.kernels.ufunc_loops cimport WORTH_THE_GIL, Kernel
from libc.stdlib cimport calloc, free
from numpy cimport npy_intp

from .elementwise_ops cimport elementwise, elementwise_of_three
from .emitters cimport emit_special
from .instructions cimport CALL, FUSED, PRODUCT, Instruction
from .moved_ops cimport are_views, is_strided_view
from .plan_code cimport Span
from .plan_layout cimport (
    DEFERRED, EXTERNAL, NOWHERE, PLACED, SMALL_BYTES, STACKED, UNKNOWN, Place, external_address,
    external_number, is_plain_float, memory_of)

cdef Op add_op

from cytape.errors import GraphError
from cytape.ops.elementwise import add as add_op

cdef extern from "Python.h":
    PyObject* PyList_GET_ITEM(object list, Py_ssize_t i) noexcept  # borrowed

cdef enum:
    SPAN_INSTRUCTIONS = 4096     # signals are checked after so many, or so much data
    SPAN_BYTES = 1 << 23
    INSTRUCTION_EFFORT = 256     # effort of the smallest instruction, in bytes read or written
    NO_SYMBOL = -1
    FEW = 8                      # least broadcast / stored size of a fetch that is not copied


cdef int compile(Code code, tuple keep) except -1:
    cdef SymbolicGraph graph = code.graph
    cdef int32_t node, top, i
    cdef char* needed
    for i in code.feeds + code.fetches:
        graph.valid_symbol(i)
    for i in keep:
        graph.valid_node(i)
    needed = <char*>calloc(graph.n_nodes + 1, 1)
    if needed == NULL:
        raise MemoryError()
    try:
        top = mark(code, needed, keep)
        place_feeds(code)
        for node in range(top):
            if needed[node]:
                spend(effort_so_far(), OP_EFFORT)
                emit_node(code, node)
    finally:
        free(needed)
    fetch(code)
    divide_into_spans(code)
    code.peak_bytes = code.layout.peak
    return 0


cdef int32_t mark(Code code, char* needed, tuple keep) except -1:
    """Find the needed nodes and count the uses of symbols; return the end of the nodes."""
    cdef SymbolicGraph graph = code.graph
    cdef Place* places = code.layout.places
    cdef int32_t node, symbol, i, top = 0, n_needed = 0
    cdef Node* row
    for symbol in code.feeds:
        places[symbol].kind = PLACED
    for i, symbol in enumerate(code.fetches):
        places[symbol].uses += 1
        if places[symbol].kind == NOWHERE:
            node = graph.symbols[symbol].node
            needed[node] = True
            top = max(top, node + 1)
            if code.spec(symbol).known and code.spec(symbol).nbytes > SMALL_BYTES:
                code.direct.setdefault(symbol, <int32_t>len(code.feeds) + i)
    for node in keep:
        needed[node] = True
        top = max(top, node + 1)
    for node in range(top - 1, -1, -1):
        if not needed[node]:
            continue
        n_needed += 1
        if graph.has_control_inputs:
            for i in graph.control_inputs_of(node):
                if i >= node:
                    raise GraphError("a control input was built after the op that waits for it")
                needed[i] = True
        if (<Op>PyList_GET_ITEM(graph.ops, node)).lowering == Lowering.VARIABLE_READ:
            continue
        row = &graph.nodes[node]
        for i in range(row.inputs, row.inputs + row.n_inputs):
            symbol = graph.args[i]
            places[symbol].uses += 1
            if places[symbol].kind == NOWHERE:
                needed[graph.symbols[symbol].node] = True
    if not code.nested:
        compute_in_place(code)
    code.reserve(n_needed + n_needed // 8 + <int32_t>len(code.fetches) + 16)
    return top


cdef int compute_in_place(Code code) except -1:
    """Compute a value in fetched memory if a view of it, or a sum that reuses it, is fetched."""
    cdef int32_t symbol, node, base
    cdef list nodes
    for fetched, number in list(code.direct.items()):
        symbol, base, nodes = fetched, fetched, []
        while symbol != NO_SYMBOL:
            node = code.graph.symbols[symbol].node
            if base == fetched and type(code.graph.ops[node]) is StructuralOp and (
                    code.graph.nodes[node].n_inputs == 1 and code.graph.nodes[node].n_outputs == 1):
                symbol = code.graph.args[code.graph.nodes[node].inputs]
                nodes.insert(0, node)
                if not are_views(code, nodes):
                    break
            else:
                symbol = summed_before(code, node)
                if symbol == NO_SYMBOL and base != fetched:
                    copy_first_term(code, node, number)
                base = symbol
            if symbol == NO_SYMBOL or symbol in code.direct or (
                    code.layout.places[symbol].kind != NOWHERE
                    or code.spec(symbol).nbytes != code.spec(fetched).nbytes):
                break
            code.direct[symbol] = number
    return 0


cdef int32_t summed_before(Code code, int32_t node) except -2:
    """Return the earlier sum whose memory a sum takes over, or NO_SYMBOL."""
    cdef Node* row = &code.graph.nodes[node]
    cdef int32_t symbol, found = NO_SYMBOL, i
    if not is_sum(code, node):
        return NO_SYMBOL
    for i in range(row.inputs, row.inputs + row.n_inputs):
        symbol = code.graph.args[i]
        if code.layout.places[symbol].uses == 1 and (
                code.spec(symbol) is code.spec(row.first_output)
                and is_sum(code, code.graph.symbols[symbol].node)
                and (found == NO_SYMBOL or symbol < found)):
            found = symbol
    return found


cdef int copy_first_term(Code code, int32_t node, number) except -1:
    """Copy the first of more than two large terms to the sum, if it is a strided view.

    This frees its base before the second term is computed.
    """
    cdef Node* row = &code.graph.nodes[node]
    cdef int32_t first, base
    if code.graph.ops[node] is not add_op:
        return 0
    first = min(code.graph.args[row.inputs], code.graph.args[row.inputs + 1])
    row = &code.graph.nodes[code.graph.symbols[first].node]
    if code.spec(first).nbytes < LARGE_ARRAY or code.layout.places[first].uses != 1 or (
            code.layout.places[first].kind != NOWHERE
            or not is_strided_view(code, code.graph.symbols[first].node)):
        return 0
    base = code.graph.args[row.inputs]
    if code.layout.places[base].kind == NOWHERE and code.layout.places[base].uses == 1 and (
            code.spec(base).nbytes == code.spec(first).nbytes):
        code.direct[first] = number
        code.copied.add(first)
    return 0


cdef bint is_sum(Code code, int32_t node) except -1:
    """Return whether a node overwrites a contiguous operand that has no other reader."""
    cdef object op = code.graph.ops[node]
    if type(op) is FusedOp:
        return code.graph.nodes[node].n_outputs == 1
    return op is add_op and is_plain_float(code.spec(code.graph.nodes[node].first_output)) or (
        type(op) is AccumulateOp and (<AccumulateOp>op).first_is_all)


cdef int place_feeds(Code code) except -1:
    cdef Place* place
    cdef int32_t symbol, k
    for k, symbol in enumerate(code.feeds):
        place = &code.layout.places[symbol]
        if place.claims:
            raise GraphError(
                f"{code.graph.describe(symbol)} is fed twice")
        if code.nested and k >= code.n_fresh and place.uses:
            place.uses += 1  # never freed: the next run reads it, too
        if code.nested and not code.spec(symbol).known:
            code.layout.take_stack(symbol)
            continue
        if place.uses and code.spec(symbol).known and code.spec(symbol).nbytes <= SMALL_BYTES:
            code.layout.take(symbol, code.spec(symbol).nbytes)
        else:
            code.place_external(symbol, k)
    return 0


cdef int emit_node(Code code, int32_t node) except -1:
    cdef PyObject* op = PyList_GET_ITEM(code.graph.ops, node)
    cdef Kernel kernel
    cdef bint done = False
    if type(<object>op) is ElementwiseOp:
        kernel = (<ElementwiseOp>op).kernel
        done = kernel is not None and (
            elementwise(code, node, kernel) or elementwise_of_three(code, node, kernel))
    else:
        done = emit_special(code, node, <Op>op)
    if not done:
        call(code, node)
    return finish(code, node)


cdef int finish(Code code, int32_t node) except -1:
    """Count down the uses of the inputs; the outputs may be unused."""
    cdef Node* row = &code.graph.nodes[node]
    cdef Place* place
    cdef int32_t i
    if (<Op>PyList_GET_ITEM(code.graph.ops, node)).lowering != Lowering.VARIABLE_READ:
        for i in range(row.inputs, row.inputs + row.n_inputs):
            code.drop(code.graph.args[i])
    for i in range(row.first_output, row.first_output + row.n_outputs):
        place = &code.layout.places[i]
        if place.uses == 0 and place.kind != NOWHERE and place.claims:
            code.release_claim(place.root)
    return 0


cdef int call(Code code, int32_t node) except -1:
    """Leave a node to Python."""
    cdef Node* row = &code.graph.nodes[node]
    cdef int32_t i
    for i in range(row.inputs, row.inputs + row.n_inputs):
        if code.layout.places[code.graph.args[i]].kind == DEFERRED:
            code.settle(code.graph.args[i])
    if (<Op>PyList_GET_ITEM(code.graph.ops, node)).lowering != Lowering.VARIABLE_READ:
        code.repeatable = False
    if code.fed is None:
        code.fed = frozenset(code.feeds)
    if code.unneeded:
        code.releases[code.n_code] = tuple(code.unneeded)
        code.unneeded.clear()
    for i in range(row.first_output, row.first_output + row.n_outputs):
        if code.layout.places[i].kind == NOWHERE:
            if not code.spec(i).known:
                code.place_external(i, code.new_external())
            elif code.spec(i).nbytes <= SMALL_BYTES:
                code.layout.take(i, code.spec(i).nbytes)
            elif i in code.direct and code.direct[i] not in code.filled and (
                    code.fetches[code.direct[i] - len(code.feeds)] == i):
                code.late.add(code.direct[i])
                code.filled.add(code.direct[i])
                code.place_external(i, code.direct[i])
            else:
                code.place_external(i, code.new_external())
    code.next(node, CALL)
    return 0


cdef int fetch(Code code) except -1:
    """Copy fetched values that were not computed in place."""
    cdef Place* place
    cdef int32_t i, symbol, number
    for i, symbol in enumerate(code.fetches):
        number = <int32_t>len(code.feeds) + i
        if code.layout.places[symbol].kind == DEFERRED:
            code.settle(symbol)
        place = &code.layout.places[symbol]
        if place.kind == UNKNOWN or place.kind == STACKED or is_repeated(code, symbol) or (
                is_fed(code, place)):
            code.late.add(number)
        elif i < code.n_movable and is_moved(code, i, symbol):
            continue
        elif not is_in_place(code, symbol, number):
            code.emit_copy(code.graph.symbols[symbol].node, place, code.spec(symbol),
                           external_address(number))
    return 0


cdef bint is_repeated(Code code, int32_t symbol) except -1:
    """Return whether a fetched value repeats little memory, and is returned with those strides."""
    cdef Place* place = &code.layout.places[symbol]
    cdef npy_intp nbytes = code.spec(symbol).nbytes
    if code.nested or place.strides < 0 or nbytes <= SMALL_BYTES:
        return False
    return code.shows_item(symbol) or FEW * code.layout.places[place.root].nbytes <= nbytes


cdef bint is_fed(Code code, Place* place) except -1:
    """Return whether a fetched value is a contiguous part of a fed one, and is returned as such."""
    return (not code.nested and place.strides < 0 and memory_of(place.address) == EXTERNAL
            and external_number(place.address) < <int32_t>len(code.feeds))


cdef bint is_in_place(Code code, int32_t symbol, int32_t number) except -1:
    """Return whether a fetched value is in its own memory, perhaps as a view."""
    cdef Place* place = &code.layout.places[symbol]
    if code.nested:
        return place.address == external_address(number)
    return (memory_of(place.address) == EXTERNAL and external_number(place.address) == number
            and code.layout.places[place.root].nbytes == code.spec(symbol).nbytes)


cdef bint is_moved(Code code, int32_t fetch, int32_t symbol) except -1:
    """Return whether a fetched value can stay in memory of the code, to be moved by the caller."""
    cdef Place* place = &code.layout.places[symbol]
    cdef Place* root = &code.layout.places[place.root]
    if memory_of(place.address) != EXTERNAL or place.strides >= 0:
        return False
    number = external_number(place.address)
    if (number not in code.owned or number in code.moves or place.address != root.address
            or root.nbytes != code.spec(symbol).nbytes):
        return False
    code.moves[fetch] = number
    return True


cdef int divide_into_spans(Code code) except -1:
    cdef int32_t i, start = 0
    cdef npy_intp work = 0, more
    cdef bint release = False
    cdef Span* span
    for i in range(code.n_code + 1):
        if start < i and (i == code.n_code or code.code[i].kind == CALL or work > SPAN_BYTES
                          or i - start == SPAN_INSTRUCTIONS):
            code.spans = with_one_more(code.spans, &code.n_spans, &code.spans_capacity)
            span = &code.spans[code.n_spans - 1]
            span.start, span.end, span.is_call, span.release = start, i, False, release
            start, work, release = i, 0, False
        if i == code.n_code:
            break
        more = effort_of(code, &code.code[i])
        code.effort += more + INSTRUCTION_EFFORT
        if code.code[i].kind == CALL:
            code.spans = with_one_more(code.spans, &code.n_spans, &code.spans_capacity)
            span = &code.spans[code.n_spans - 1]
            span.start, span.end, span.is_call, span.release = i, i + 1, True, False
            start = i + 1
            continue
        work += more
        release |= more >= WORTH_THE_GIL
    return 0


cdef npy_intp effort_of(Code code, Instruction* instruction) noexcept:
    """Return the effort of an instruction, in bytes that could be read in the same time."""
    cdef const npy_intp* geometry = code.pool + instruction.geometry
    cdef npy_intp effort = instruction.work
    if instruction.kind == PRODUCT:
        return max(effort, geometry[0] * geometry[1] * geometry[2] * geometry[3])
    if instruction.kind == FUSED:
        return effort * (<FusedOp><PyObject*>instruction.loop).n_steps
    return effort


cdef Span* with_one_more(Span* spans, index_t* count, index_t* capacity) except NULL:
    if count[0] == capacity[0]:
        grow(<void**>&spans, capacity, count[0] + 1, sizeof(Span))
    count[0] += 1
    return spans
