# How a gradient is computed:
#
# a. Find the ops that the targets depend on. On the way count, for every tensor, how many of those
#    ops use it (`pending`), and for every op, how many of its outputs are so used (`missing`).
# b. Seed the targets. Ops that miss nothing are ready.
# c. Take the ready op that was recorded last: this retraces the forward pass, so saved values go in
#    the reverse order of their making, and few gradients are alive at a time. Sum what arrived for
#    each of its outputs, call its backward function, hand the results to its inputs' tensors. A
#    tensor with no consumer pending is done; an op with no output missing is ready.
# d. All state is indexed by slot or op relative to the trace and belongs to this one call: traces
#    may grow meanwhile (a backward function may record, or even differentiate again).

from .idtable cimport idtable_get
from .memory cimport grow, resize
from .trace cimport CONSUMED, UNTRACED, WATCHED, Op, Trace
from .typedefs cimport NO_INDEX, id_t, index_t
from .vspace cimport BackwardCall, VSpace
from libc.stdint cimport int32_t
from libc.stdlib cimport free
from libc.string cimport memcpy, memset

from cytape.errors import TapeStateError

cdef enum:
    NOT_NEEDED = -1          # State.missing of an op that no target depends on
    DONE = -2                # ... and of one whose backward function had its turn
    AGGREGATE_ABOVE = 4      # more gradients than this for one tensor, ...
    BYTES_PER_ELEMENT = 4
    AGGREGATE_BYTES = 1 << 27  # ... of more than this size together, are summed before the last came

cdef struct TensorState:
    void* gradient   # the first that arrived
    index_t more     # the latest of the others, linked backwards in State.extra
    int32_t count    # gradients here
    int32_t pending  # needed ops that use the tensor and had not their turn yet
    bint is_source

cdef struct Extra:
    void* gradient
    index_t previous

cdef struct State:
    index_t n_slots, n_ops   # of the trace, when this began
    TensorState* tensors
    int32_t* missing         # per op: outputs with uses pending
    index_t* ready           # binary heap, the largest op on top
    index_t n_ready
    Extra* extra
    index_t n_extra, extra_capacity, free_extra
    void** terms             # gradients to be summed
    index_t term_capacity
    void** row               # of the op at hand: its refs, output gradients, input gradients
    index_t row_capacity
    char* needed             # of the op at hand: which inputs want a gradient
    index_t needed_capacity


cdef int backpropagate(Trace trace, VSpace vspace, const id_t* targets, Py_ssize_t n_targets,
                       void** seeds, void** infos, const id_t* sources, Py_ssize_t n_sources,
                       bint build_zeros, bint consume, void** results) except -1:
    cdef State state
    cdef Py_ssize_t i
    cdef index_t slot, op
    memset(&state, 0, sizeof(State))
    memset(results, 0, n_sources * sizeof(void*))
    trace.begin_sweep()
    try:
        # Ids that only the caller knows get a slot, so that everything has one.
        for i in range(n_targets):
            if idtable_get(&trace.table, targets[i]) == NO_INDEX:
                trace.new_slot(targets[i], UNTRACED)
        for i in range(n_sources):
            if idtable_get(&trace.table, sources[i]) == NO_INDEX:
                trace.new_slot(sources[i], UNTRACED)
        begin(trace, &state)
        for i in range(n_sources):
            state.tensors[idtable_get(&trace.table, sources[i])].is_source = True
        prepare(trace, &state, targets, n_targets)
        if consume:
            for op in range(state.n_ops):
                if state.missing[op] == NOT_NEEDED:
                    trace.consume(op)
        seed(trace, vspace, &state, targets, n_targets, seeds, infos)
        sweep(trace, vspace, &state, build_zeros, consume)
        for i in range(n_sources):
            slot = idtable_get(&trace.table, sources[i])
            if state.tensors[slot].count:
                results[i] = aggregate(vspace, &state, slot)
                vspace.retain(results[i])
    except BaseException:
        for i in range(n_sources):
            if results[i] != NULL:
                vspace.release(results[i])
                results[i] = NULL
        raise
    finally:
        for i in range(n_targets):
            if seeds[i] != NULL:
                vspace.release(seeds[i])
                seeds[i] = NULL
        for slot in range(state.n_slots):
            drop_gradients(vspace, &state, slot)
        if consume:
            for op in range(state.n_ops):
                trace.consume(op)
        free(state.tensors)
        free(state.missing)
        free(state.ready)
        free(state.extra)
        free(state.terms)
        free(state.row)
        free(state.needed)
        trace.end_sweep()
    return 0


cdef int begin(Trace trace, State* state) except -1:
    resize(<void**>&state.tensors, trace.n_slots, sizeof(TensorState))
    memset(state.tensors, 0, trace.n_slots * sizeof(TensorState))
    state.n_slots = trace.n_slots
    resize(<void**>&state.missing, trace.n_ops, sizeof(int32_t))
    memset(state.missing, 0xff, trace.n_ops * sizeof(int32_t))  # NOT_NEEDED
    state.free_extra = NO_INDEX
    state.n_ops = trace.n_ops
    return 0


cdef index_t producer(Trace trace, State* state, index_t slot) noexcept nogil:
    """The op to differentiate for a tensor, or NO_INDEX."""
    cdef index_t op = trace.slots[slot].op
    return op if 0 <= op < state.n_ops and trace.ops[op].kind != NULL else NO_INDEX


cdef int prepare(Trace trace, State* state, const id_t* targets, Py_ssize_t n_targets) except -1:
    """Find the needed ops and what each has to wait for; the ready ones are heaped up."""
    cdef index_t* stack
    cdef index_t n_stack = 0, op, upstream, slot, i
    cdef Py_ssize_t target
    # An op enters this stack, and later the heap in the same memory, at most once.
    resize(<void**>&state.ready, state.n_ops, sizeof(index_t))
    stack = state.ready
    for target in range(n_targets):
        op = producer(trace, state, idtable_get(&trace.table, targets[target]))
        if op != NO_INDEX and state.missing[op] == NOT_NEEDED:
            state.missing[op] = 0
            stack[n_stack] = op
            n_stack += 1
        while n_stack:
            n_stack -= 1
            op = stack[n_stack]
            for i in range(trace.ops[op].args, trace.ops[op].args + trace.ops[op].n_inputs):
                slot = trace.args[i]
                if slot == NO_INDEX:
                    continue
                state.tensors[slot].pending += 1
                if state.tensors[slot].pending > 1:
                    continue
                upstream = producer(trace, state, slot)
                if upstream == NO_INDEX:
                    continue
                if state.missing[upstream] == NOT_NEEDED:
                    state.missing[upstream] = 0
                    stack[n_stack] = upstream
                    n_stack += 1
                state.missing[upstream] += 1
    for op in range(state.n_ops):
        if state.missing[op] == 0:
            push_ready(state, op)
    return 0


cdef int seed(Trace trace, VSpace vspace, State* state, const id_t* targets, Py_ssize_t n_targets,
              void** seeds, void** infos) except -1:
    cdef Py_ssize_t target
    cdef index_t slot, op, output
    cdef void* gradient
    for target in range(n_targets):
        slot = idtable_get(&trace.table, targets[target])
        op = producer(trace, state, slot)
        gradient = seeds[target]
        seeds[target] = NULL
        if gradient == NULL:
            if op != NO_INDEX:
                output = 0
                while trace.args[trace.ops[op].args + trace.ops[op].n_inputs + output] != slot:
                    output += 1
                gradient = vspace.ones(trace.refs[trace.ops[op].refs + output])
            elif trace.slots[slot].op == CONSUMED or trace.slots[slot].op >= 0:
                raise TapeStateError(
                    f"cannot find the op that produced target {targets[target]}: a non-persistent tape "
                    "serves one gradient computation only; make it persistent to compute more")
            elif infos[target] != NULL:
                gradient = vspace.ones(infos[target])
            else:
                continue  # no op leads to this target
        deliver(vspace, state, slot, gradient)
    return 0


cdef int sweep(Trace trace, VSpace vspace, State* state, bint build_zeros, bint consume) except -1:
    cdef index_t op, slot, i, upstream
    cdef Op entry
    cdef void** gradients
    while state.n_ready:
        op = pop_ready(state)
        state.missing[op] = DONE
        call_backward(trace, vspace, state, op, build_zeros)
        # The call may have recorded, so the arrays are looked up again.
        entry = trace.ops[op]
        if consume:
            trace.consume(op)
        gradients = state.row + entry.n_refs + entry.n_outputs
        for i in range(entry.n_inputs):
            slot = trace.args[entry.args + i]
            if slot == NO_INDEX:
                continue
            upstream = producer(trace, state, slot)
            if gradients[i] != NULL and (upstream != NO_INDEX or (
                    state.tensors[slot].is_source and trace.slots[slot].op != UNTRACED)):
                deliver(vspace, state, slot, gradients[i])
                gradients[i] = NULL
            state.tensors[slot].pending -= 1
            if state.tensors[slot].pending == 0 and upstream != NO_INDEX:
                state.missing[upstream] -= 1
                if state.missing[upstream] == 0:
                    push_ready(state, upstream)
        release_row(vspace, state, entry.n_refs, entry.n_outputs + entry.n_inputs)
    for op in range(state.n_ops):
        if state.missing[op] > 0:
            raise TapeStateError("ops on the tape depend on each other in a circle: an op was recorded "
                                 "whose output is upstream of its own inputs")
    return 0


cdef int call_backward(Trace trace, VSpace vspace, State* state, index_t op,
                       bint build_zeros) except -1:
    """Fill state.row with the op's refs, output gradients and input gradients."""
    cdef Op entry = trace.ops[op]
    cdef BackwardCall call
    cdef index_t slot, i
    cdef index_t n = entry.n_refs + entry.n_outputs + entry.n_inputs
    cdef bint any_gradient = False
    if n > state.row_capacity:
        grow(<void**>&state.row, &state.row_capacity, n, sizeof(void*))
    if entry.n_inputs > state.needed_capacity:
        grow(<void**>&state.needed, &state.needed_capacity, entry.n_inputs, sizeof(char))
    call.kind = entry.kind
    call.refs = state.row
    call.n_refs = entry.n_refs
    call.n_outputs = entry.n_outputs
    call.n_inputs = entry.n_inputs
    call.output_gradients = state.row + entry.n_refs
    call.needed = state.needed
    call.input_gradients = call.output_gradients + entry.n_outputs
    memcpy(call.refs, trace.refs + entry.refs, entry.n_refs * sizeof(void*))
    memset(call.output_gradients, 0, (entry.n_outputs + entry.n_inputs) * sizeof(void*))
    for i in range(entry.n_inputs):
        slot = trace.args[entry.args + i]
        state.needed[i] = slot != NO_INDEX and (
            trace.slots[slot].op != UNTRACED or state.tensors[slot].is_source)
    try:
        for i in range(entry.n_outputs):
            slot = trace.args[entry.args + entry.n_inputs + i]
            if slot == NO_INDEX or slot >= state.n_slots or state.tensors[slot].count == 0:
                continue
            any_gradient = True
            call.output_gradients[i] = aggregate(vspace, state, slot)
            if state.tensors[slot].is_source:
                vspace.retain(call.output_gradients[i])
            else:
                state.tensors[slot].count = 0
        if not any_gradient:
            return 0
        for i in range(entry.n_outputs if build_zeros else 0):
            if call.output_gradients[i] == NULL and (
                    i >= 64 or not entry.kind.optional_gradients >> i & 1):
                call.output_gradients[i] = vspace.zeros(call.refs[i])
        vspace.backward(&call)
    except BaseException:
        release_row(vspace, state, entry.n_refs, entry.n_outputs + entry.n_inputs)
        raise
    return 0


cdef void release_row(VSpace vspace, State* state, index_t first, index_t count) noexcept:
    cdef index_t i
    cdef void* gradient
    for i in range(first, first + count):
        gradient = state.row[i]
        if gradient != NULL:
            state.row[i] = NULL
            vspace.release(gradient)


# ---- gradients waiting for a tensor

cdef int deliver(VSpace vspace, State* state, index_t slot, void* gradient) except -1:
    """Add to what arrived for a tensor; takes over the reference, also after an error."""
    cdef TensorState* tensor = &state.tensors[slot]
    cdef index_t extra
    if tensor.count == 0:
        tensor.gradient = gradient
        tensor.more = NO_INDEX
        tensor.count = 1
        return 0
    extra = state.free_extra
    if extra != NO_INDEX:
        state.free_extra = state.extra[extra].previous
    else:
        if state.n_extra == state.extra_capacity:
            try:
                grow(<void**>&state.extra, &state.extra_capacity, state.n_extra + 1, sizeof(Extra))
            except BaseException:
                vspace.release(gradient)
                raise
        extra = state.n_extra
        state.n_extra += 1
    state.extra[extra].gradient = gradient
    state.extra[extra].previous = tensor.more
    tensor.more = extra
    tensor.count += 1
    if tensor.count > AGGREGATE_ABOVE and (
            tensor.count * vspace.size(tensor.gradient) * BYTES_PER_ELEMENT > AGGREGATE_BYTES):
        aggregate(vspace, state, slot)
    return 0


cdef void* aggregate(VSpace vspace, State* state, index_t slot) except NULL:
    """Sum what arrived for a tensor, in order of arrival; the state keeps owning the sum."""
    cdef TensorState* tensor = &state.tensors[slot]
    cdef int32_t count = tensor.count
    if count == 1:
        return tensor.gradient
    if count > state.term_capacity:
        grow(<void**>&state.terms, &state.term_capacity, count, sizeof(void*))
    take_gradients(state, slot, state.terms)
    tensor.gradient = vspace.add(state.terms, count)
    tensor.more = NO_INDEX
    tensor.count = 1
    return tensor.gradient


cdef void take_gradients(State* state, index_t slot, void** gradients) noexcept nogil:
    cdef TensorState* tensor = &state.tensors[slot]
    cdef index_t extra = tensor.more, previous
    cdef int32_t i
    gradients[0] = tensor.gradient
    for i in range(tensor.count - 1, 0, -1):
        gradients[i] = state.extra[extra].gradient
        previous = state.extra[extra].previous
        state.extra[extra].previous = state.free_extra
        state.free_extra = extra
        extra = previous
    tensor.count = 0


cdef void drop_gradients(VSpace vspace, State* state, index_t slot) noexcept:
    cdef TensorState* tensor = &state.tensors[slot]
    cdef index_t extra
    cdef int32_t count = tensor.count
    if count == 0:
        return
    extra = tensor.more
    tensor.count = 0
    vspace.release(tensor.gradient)
    while count > 1:
        count -= 1
        vspace.release(state.extra[extra].gradient)
        extra = state.extra[extra].previous


# ---- the heap of ready ops

cdef void push_ready(State* state, index_t op) noexcept nogil:
    cdef index_t place = state.n_ready, parent
    state.n_ready += 1
    while place > 0:
        parent = (place - 1) // 2
        if state.ready[parent] > op:
            break
        state.ready[place] = state.ready[parent]
        place = parent
    state.ready[place] = op


cdef index_t pop_ready(State* state) noexcept nogil:
    cdef index_t top = state.ready[0], place = 0, child, last
    state.n_ready -= 1
    last = state.ready[state.n_ready]
    while True:
        child = 2 * place + 1
        if child >= state.n_ready:
            break
        if child + 1 < state.n_ready and state.ready[child + 1] > state.ready[child]:
            child += 1
        if state.ready[child] < last:
            break
        state.ready[place] = state.ready[child]
        place = child
    state.ready[place] = last
    return top
