from .memory cimport grow, release
from .typedefs cimport NO_INDEX

cdef enum:
    AGGREGATE_ABOVE = 4      # more gradients than this for one tensor, ...
    BYTES_PER_ELEMENT = 4
    AGGREGATE_BYTES = 1 << 27  # ... of more than this together, are summed before the last came


cdef int deliver(VSpace vspace, Arrivals* arrivals, index_t slot, void* gradient, index_t sender,
                 bint in_order) except -1:
    cdef TensorState* tensor = &arrivals.tensors[slot]
    cdef void* total
    cdef index_t extra
    if tensor.count == 0:
        tensor.gradient = gradient
        tensor.sender = sender
        tensor.more = NO_INDEX
        tensor.count = 1
        return 0
    if tensor.count == 1 and in_order and (tensor.sender >= sender or not arrivals.by_sender):
        total = vspace.accumulate(tensor.gradient, gradient)
        if total != NULL:
            tensor.gradient = total
            tensor.sender = sender
            return 0
    extra = arrivals.free_extra
    if extra != NO_INDEX:
        arrivals.free_extra = arrivals.extra[extra].previous
    else:
        if arrivals.n_extra == arrivals.extra_capacity:
            try:
                grow(<void**>&arrivals.extra, &arrivals.extra_capacity, arrivals.n_extra + 1,
                     sizeof(Extra))
            except BaseException:
                vspace.release(gradient)
                raise
        extra = arrivals.n_extra
        arrivals.n_extra += 1
    arrivals.extra[extra].gradient = gradient
    arrivals.extra[extra].sender = sender
    arrivals.extra[extra].previous = tensor.more
    tensor.more = extra
    tensor.count += 1
    if in_order and tensor.count > AGGREGATE_ABOVE and (
            tensor.count * vspace.size(tensor.gradient) * BYTES_PER_ELEMENT > AGGREGATE_BYTES):
        aggregate(vspace, arrivals, slot)
    return 0


cdef void* aggregate(VSpace vspace, Arrivals* arrivals, index_t slot) except NULL:
    cdef TensorState* tensor = &arrivals.tensors[slot]
    cdef int32_t count = tensor.count, first = 0
    if count == 1:
        return tensor.gradient
    if count > arrivals.term_capacity:
        grow(<void**>&arrivals.terms, &arrivals.term_capacity, count, sizeof(void*))
    if count > arrivals.sender_capacity:
        grow(<void**>&arrivals.senders, &arrivals.sender_capacity, count, sizeof(index_t))
    if take_gradients(arrivals, slot):
        first = accumulate_in_order(vspace, arrivals, count)
    tensor.gradient = (arrivals.terms[first] if first == count - 1 else
                       vspace.add(arrivals.terms + first, count - first))
    tensor.sender = arrivals.senders[count - 1]
    tensor.more = NO_INDEX
    tensor.count = 1
    return tensor.gradient


cdef int32_t accumulate_in_order(VSpace vspace, Arrivals* arrivals, int32_t count) except -1:
    """Sum the terms as `deliver` had, had they come in order; returns where the sum stands."""
    cdef int32_t i, j
    cdef void* total
    for i in range(1, count):
        try:
            total = vspace.accumulate(arrivals.terms[i - 1], arrivals.terms[i])
        except BaseException:
            for j in range(count):
                if j >= i - 1 and j != i:
                    vspace.release(arrivals.terms[j])
            raise
        if total == NULL:
            return i - 1
        arrivals.terms[i] = total
    return count - 1


cdef bint take_gradients(Arrivals* arrivals, index_t slot) noexcept nogil:
    """List a tensor's gradients; True if they did not come in the order of the sum."""
    cdef TensorState* tensor = &arrivals.tensors[slot]
    cdef index_t extra = tensor.more, previous, sender
    cdef int32_t i, j
    cdef void* gradient
    cdef bint out_of_order = False
    arrivals.terms[0] = tensor.gradient
    arrivals.senders[0] = tensor.sender
    for i in range(tensor.count - 1, 0, -1):
        arrivals.terms[i] = arrivals.extra[extra].gradient
        arrivals.senders[i] = arrivals.extra[extra].sender
        previous = arrivals.extra[extra].previous
        arrivals.extra[extra].previous = arrivals.free_extra
        arrivals.free_extra = extra
        extra = previous
    for i in range(1, tensor.count if arrivals.by_sender else 1):
        gradient, sender = arrivals.terms[i], arrivals.senders[i]
        j = i
        while j > 0 and arrivals.senders[j - 1] < sender:
            arrivals.terms[j], arrivals.senders[j] = arrivals.terms[j - 1], arrivals.senders[j - 1]
            j -= 1
        out_of_order |= j != i
        arrivals.terms[j], arrivals.senders[j] = gradient, sender
    tensor.count = 0
    return out_of_order


cdef void drop_gradients(VSpace vspace, Arrivals* arrivals, index_t slot) noexcept:
    cdef TensorState* tensor = &arrivals.tensors[slot]
    cdef index_t extra
    cdef int32_t count = tensor.count
    if count == 0:
        return
    extra = tensor.more
    tensor.count = 0
    vspace.release(tensor.gradient)
    while count > 1:
        count -= 1
        vspace.release(arrivals.extra[extra].gradient)
        extra = arrivals.extra[extra].previous


cdef void release_arrivals(Arrivals* arrivals) noexcept:
    release(arrivals.tensors)
    release(arrivals.extra)
    release(arrivals.terms)
    release(arrivals.senders)
