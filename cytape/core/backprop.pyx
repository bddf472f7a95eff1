# How a gradient is computed:
#
# a. Find the ops that the targets depend on. Count, for every tensor, the needed ops that use it
#    (`pending`), and for every op, its outputs with pending uses (`missing`).
# b. Seed the targets. Ops that miss nothing are ready.
# c. Take the ready op that was recorded last: this retraces the forward pass, so saved values are
#    released in reverse order, and few gradients are alive at a time. Sum the gradients of each of
#    its outputs, call its backward function, deliver the results to its inputs. A tensor without
#    pending uses is done; an op without missing outputs is ready.
# d. All state, indexed by slot or op relative to the store, belongs to this one call, including the
#    ops: they are taken out of the store, or copied if it keeps them. So backward functions may use
#    the tape (record, delete, differentiate again) during the call.

from .arrivals cimport (
    Arrivals, TensorState, aggregate, deliver, drop_gradients, release_arrivals)
from .idtable cimport idtable_get
from .interrupts cimport OP_EFFORT, effort_so_far, spend
from .memory cimport grow, release, resize
from .op_store cimport CONSUMED, CONSUMER, INPUT_ONLY, Op, OpTable, OpStore, new_slot
from .typedefs cimport NO_INDEX, id_t, index_t
from .vspace cimport NEEDED, WANTED, BackwardCall, OpKind, VSpace, takes_none
from libc.stdint cimport int32_t, int64_t
from libc.string cimport memcpy, memset

from cytape.errors import TapeStateError

cdef enum:
    NOT_NEEDED = -1          # State.missing of an op that no target depends on
    FEW_NAMED = 8

cdef struct State:
    OpTable table            # taken from the store (consume), or a copy of its ops and args
    bint consume
    bint reading             # refs from the store's table
    bint pinning             # the store's arrays
    index_t n_slots          # of the store, at the beginning
    index_t* named           # slots of the targets, then of the sources
    index_t[FEW_NAMED] few_named  # memory for these, if they are few
    int32_t* missing         # per op: outputs with uses pending
    index_t* ready           # binary heap, the largest op on top; in the same memory
    index_t n_ready
    Arrivals arrivals
    TensorState* tensors     # of the arrivals
    BackwardCall call        # of the present op
    void** row               # refs, gradients of outputs and inputs, arrivals
    index_t row_begin, row_end  # range with gradients; empty between ops
    index_t row_capacity
    char* needed             # inputs of the op that need a gradient
    index_t needed_capacity


cdef int backpropagate(OpStore store, VSpace vspace, const id_t* targets, Py_ssize_t n_targets,
                       void** seeds, void** infos, const id_t* sources, Py_ssize_t n_sources,
                       bint build_zeros, bint consume, void** results) except -1:
    cdef State state
    cdef Py_ssize_t i
    cdef index_t slot
    cdef void* gradient
    memset(&state, 0, sizeof(State))
    memset(results, 0, n_sources * sizeof(void*))
    store.sweeps += 1
    try:
        check_targets(store, targets, n_targets, seeds, consume)
        begin(store, &state, targets, n_targets, sources, n_sources, consume)
        prepare(&state, n_targets)
        if consume:
            release_ops(store, &state, False)
        seed(store, vspace, &state, n_targets, seeds, infos)
        sweep(store, vspace, &state, build_zeros)
        for i in range(n_sources):
            slot = state.named[n_targets + i]
            if state.tensors[slot].count:
                gradient = aggregate(vspace, &state.arrivals, slot)
                vspace.retain(gradient)
                results[i] = gradient
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
        release_row(vspace, &state)
        for slot in range(state.n_slots):
            drop_gradients(vspace, &state.arrivals, slot)
        end(store, &state, targets, n_targets, sources, n_sources)
    return 0


cdef int check_targets(OpStore store, const id_t* targets, Py_ssize_t n_targets, void** seeds,
                       bint consume) except -1:
    """Raise for an impossible request before anything is consumed."""
    cdef Py_ssize_t i
    cdef index_t slot
    if consume and store.readers:
        raise TapeStateError("a backward function tried to consume the tape that is being "
                             "differentiated with keep=True; make the tape persistent")
    for i in range(n_targets):
        slot = idtable_get(&store.ids, targets[i])
        if slot != NO_INDEX and store.slots[slot].op == CONSUMED and seeds[i] == NULL:
            raise TapeStateError(
                f"cannot find the op that produced target {targets[i]}: a non-persistent tape "
                "serves one gradient computation only; make it persistent to compute more")
    return 0


cdef int begin(OpStore store, State* state, const id_t* targets, Py_ssize_t n_targets,
               const id_t* sources, Py_ssize_t n_sources, bint consume) except -1:
    cdef OpTable* table = &store.table
    cdef Py_ssize_t i
    cdef index_t slot
    cdef id_t id
    # Ids unknown to the tape get a slot for the duration of this call.
    if n_targets + n_sources > FEW_NAMED:
        resize(<void**>&state.named, n_targets + n_sources, sizeof(index_t))
    else:
        state.named = state.few_named
    for i in range(n_targets + n_sources):
        id = targets[i] if i < n_targets else sources[i - n_targets]
        slot = idtable_get(&store.ids, id)
        state.named[i] = new_slot(store, id, INPUT_ONLY) if slot == NO_INDEX else slot
    store.pinned += 1  # only now: free slots could be used up to here
    state.pinning = True
    resize(<void**>&state.arrivals.tensors, store.n_slots, sizeof(TensorState))
    state.tensors = state.arrivals.tensors
    resize(<void**>&state.missing, 2 * <size_t>table.n_ops, sizeof(int32_t))
    state.ready = <index_t*>(state.missing + table.n_ops)
    if not consume:
        resize(<void**>&state.table.ops, table.n_ops, sizeof(Op))
        resize(<void**>&state.table.args, table.n_args, sizeof(index_t))
        memcpy(state.table.ops, table.ops, table.n_ops * sizeof(Op))
        memcpy(state.table.args, table.args, table.n_args * sizeof(index_t))
        state.table.n_ops = table.n_ops
        store.readers += 1
        state.reading = True
    # Nothing fails from here on.
    state.arrivals.free_extra = NO_INDEX
    memset(state.missing, 0xff, table.n_ops * sizeof(int32_t))  # NOT_NEEDED
    memset(state.tensors, 0, store.n_slots * sizeof(TensorState))
    state.n_slots = store.n_slots
    for slot in range(store.n_slots):
        state.tensors[slot].known = store.slots[slot].op != INPUT_ONLY
        state.tensors[slot].producer = (store.slots[slot].op if store.slots[slot].op >= 0
                                        else NO_INDEX)
    for i in range(n_sources):
        state.tensors[state.named[n_targets + i]].is_source = True
    state.consume = consume
    if consume:
        state.table = store.take_table()
    return 0


cdef void end(OpStore store, State* state, const id_t* targets, Py_ssize_t n_targets,
              const id_t* sources, Py_ssize_t n_sources) noexcept:
    cdef Py_ssize_t i
    cdef index_t op, slot, arg
    cdef index_t first_doomed = store.n_doomed
    cdef Op* entry
    if state.consume:
        release_ops(store, state, True)
        for op in range(state.table.n_ops):
            entry = &state.table.ops[op]
            for arg in range(entry.args, entry.args + entry.n_inputs + entry.n_outputs):
                slot = state.table.args[arg]
                if slot == NO_INDEX:
                    continue
                if arg < entry.args + entry.n_inputs:
                    store.drop_use(slot, CONSUMER)
                elif store.slots[slot].op == CONSUMED and store.slots[slot].uses == 0:
                    store.free_slot_of(slot)
        store.forget(first_doomed)
        release(state.table.refs)
    store.readers -= state.reading
    for i in range(n_targets + n_sources):
        slot = idtable_get(&store.ids, targets[i] if i < n_targets else sources[i - n_targets])
        if slot != NO_INDEX and store.slots[slot].op == INPUT_ONLY and store.slots[slot].uses == 0:
            store.free_slot_of(slot)
    release(state.table.ops)
    release(state.table.args)
    if state.named != state.few_named:
        release(state.named)
    release_arrivals(&state.arrivals)
    release(state.missing)
    release(state.row)
    release(state.needed)
    store.pinned -= state.pinning
    store.end_sweep()


cdef void release_ops(OpStore store, State* state, bint all_left) noexcept:
    """Release the consumed ops that are not needed, or at the end all remaining ones."""
    cdef index_t op
    for op in range(state.table.n_ops):
        if all_left or state.missing[op] == NOT_NEEDED:
            release_consumed(store, state, op)


cdef inline void release_consumed(OpStore store, State* state, index_t op) noexcept:
    cdef Op* entry = &state.table.ops[op]
    cdef OpKind* kind = entry.kind
    if kind != NULL:
        entry.kind = NULL
        kind.release(state.table.refs + entry.refs, entry.n_refs, store.keeper)


cdef int prepare(State* state, Py_ssize_t n_targets) except -1:
    """Find the needed ops, count their missing gradients, and build a heap of the ready ones."""
    cdef int64_t* effort = effort_so_far()
    cdef index_t* stack = state.ready  # an op enters it, and later the heap there, at most once
    cdef index_t n_stack = 0, op, upstream, slot, i
    cdef Py_ssize_t target
    cdef Op* entry
    for target in range(n_targets):
        op = state.tensors[state.named[target]].producer
        if op != NO_INDEX and state.missing[op] == NOT_NEEDED:
            state.missing[op] = 0
            stack[n_stack] = op
            n_stack += 1
        while n_stack:
            n_stack -= 1
            op = stack[n_stack]
            entry = &state.table.ops[op]
            spend(effort, sizeof(Op))
            for i in range(entry.args, entry.args + entry.n_inputs):
                slot = state.table.args[i]
                if slot == NO_INDEX:
                    continue
                state.tensors[slot].pending += 1
                if state.tensors[slot].pending > 1:
                    continue
                upstream = state.tensors[slot].producer
                if upstream == NO_INDEX:
                    continue
                if state.missing[upstream] == NOT_NEEDED:
                    state.missing[upstream] = 0
                    stack[n_stack] = upstream
                    n_stack += 1
                state.missing[upstream] += 1
    for op in range(state.table.n_ops):
        if state.missing[op] == 0:
            push_ready(state, op)
    return 0


cdef int seed(OpStore store, VSpace vspace, State* state, Py_ssize_t n_targets, void** seeds,
              void** infos) except -1:
    cdef Py_ssize_t target
    cdef index_t slot, output = 0, producer, last_producer = NO_INDEX
    cdef void* gradient
    cdef Op* op
    for target in range(n_targets):
        slot = state.named[target]
        gradient = seeds[target]
        seeds[target] = NULL
        if gradient == NULL:
            producer = state.tensors[slot].producer
            if producer != NO_INDEX:
                op = &state.table.ops[producer]
                if producer != last_producer:  # outputs of one op are often consecutive
                    output, last_producer = 0, producer
                while state.table.args[op.args + op.n_inputs + output] != slot:
                    output = output + 1 if output + 1 < op.n_outputs else 0
                gradient = vspace.ones(refs_of(store, state)[op.refs + output])
            elif infos[target] != NULL and state.tensors[slot].is_source:
                gradient = vspace.ones(infos[target])
            else:
                continue  # no op leads to this target
        deliver(vspace, &state.arrivals, slot, gradient)
    return 0


cdef inline void** refs_of(OpStore store, State* state) noexcept nogil:
    return state.table.refs if state.consume else store.table.refs


cdef int sweep(OpStore store, VSpace vspace, State* state, bint build_zeros) except -1:
    cdef index_t op
    cdef int64_t* effort = effort_so_far()
    while state.n_ready:
        spend(effort, OP_EFFORT)
        op = pop_ready(state)
        if prepare_call(store, vspace, state, op, build_zeros):
            vspace.backward(&state.call)
        if state.consume:
            release_consumed(store, state, op)
        hand_on(vspace, state, op)
        release_row(vspace, state)
    for op in range(state.table.n_ops):
        if state.missing[op] > 0:
            raise TapeStateError("ops on the tape depend on each other in a circle: an op was "
                                 "recorded whose output is upstream of its own inputs")
    return 0


cdef bint prepare_call(OpStore store, VSpace vspace, State* state, index_t op,
                       bint build_zeros) except -1:
    """Fill the call and its row; return False if no gradient arrived: nothing is called then."""
    cdef Op* entry = &state.table.ops[op]
    cdef BackwardCall* call = &state.call
    cdef TensorState* tensor
    cdef index_t slot, i
    cdef index_t n = entry.n_refs + entry.n_outputs + 2 * entry.n_inputs
    cdef index_t* inputs = state.table.args + entry.args
    cdef index_t* outputs = inputs + entry.n_inputs
    cdef void** refs
    cdef void* gradient
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
    call.arrived = call.input_gradients + entry.n_inputs
    refs = refs_of(store, state) + entry.refs
    for i in range(entry.n_refs):
        call.refs[i] = refs[i]
    for i in range(entry.n_outputs):
        call.output_gradients[i] = NULL
    for i in range(entry.n_inputs):
        slot = inputs[i]
        state.needed[i] = 0
        call.input_gradients[i] = call.arrived[i] = NULL
        if slot == NO_INDEX:
            continue
        tensor = &state.tensors[slot]
        if tensor.known:
            state.needed[i] = WANTED if tensor.is_source else NEEDED
            if tensor.count == 1:
                call.arrived[i] = tensor.gradient
        elif tensor.is_source:
            state.needed[i] = NEEDED
    state.row_begin = entry.n_refs
    state.row_end = n - entry.n_inputs
    for i in range(entry.n_outputs):
        slot = outputs[i]
        if slot == NO_INDEX or state.tensors[slot].count == 0:
            continue
        any_gradient = True
        call.output_id = store.slots[slot].id
        gradient = aggregate(vspace, &state.arrivals, slot)
        if state.tensors[slot].is_source:
            vspace.retain(gradient)
        else:
            state.tensors[slot].count = 0
        call.output_gradients[i] = gradient
    if any_gradient:
        for i in range(entry.n_outputs if build_zeros else 0):
            if call.output_gradients[i] == NULL and not takes_none(entry.kind, i):
                call.output_gradients[i] = vspace.zeros(call.refs[i])
    return any_gradient


cdef inline int hand_on(VSpace vspace, State* state, index_t op) except -1:
    """Deliver the gradients of a backward call to the inputs, and find the ops now ready."""
    cdef Op* entry = &state.table.ops[op]
    cdef TensorState* tensor
    cdef index_t slot, i, upstream
    cdef void* gradient
    for i in range(entry.n_inputs):
        slot = state.table.args[entry.args + i]
        if slot == NO_INDEX:
            continue
        tensor = &state.tensors[slot]
        upstream = tensor.producer
        gradient = state.call.input_gradients[i]
        if gradient != NULL and (upstream != NO_INDEX or tensor.is_source and tensor.known):
            state.call.input_gradients[i] = NULL
            deliver(vspace, &state.arrivals, slot, gradient)
        tensor.pending -= 1
        if tensor.pending == 0 and upstream != NO_INDEX:
            state.missing[upstream] -= 1
            if state.missing[upstream] == 0:
                push_ready(state, upstream)
    return 0


cdef void release_row(VSpace vspace, State* state) noexcept:
    cdef void* gradient
    while state.row_begin < state.row_end:
        gradient = state.row[state.row_begin]
        state.row_begin += 1
        if gradient != NULL:
            vspace.release(gradient)


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
