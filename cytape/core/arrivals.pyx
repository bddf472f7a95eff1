from .memory cimport grow, release
from .typedefs cimport NO_INDEX

cdef enum:
    AGGREGATE_ABOVE = 4      # more gradients than this for one tensor, ...
    BYTES_PER_ELEMENT = 4
    AGGREGATE_BYTES = 1 << 27  # ... with more bytes than this in all, are summed early


cdef int deliver(VSpace vspace, Arrivals* arrivals, index_t slot, void* gradient) except -1:
    cdef TensorState* tensor = &arrivals.tensors[slot]
    cdef void* total
    cdef index_t extra
    if tensor.count == 0:
        tensor.gradient = gradient
        tensor.more = NO_INDEX
        tensor.count = 1
        return 0
    if tensor.count == 1:
        total = vspace.accumulate(tensor.gradient, gradient)
        if total != NULL:
            tensor.gradient = total
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
    arrivals.extra[extra].previous = tensor.more
    tensor.more = extra
    tensor.count += 1
    if tensor.count > AGGREGATE_ABOVE and (
            tensor.count * vspace.size(tensor.gradient) * BYTES_PER_ELEMENT > AGGREGATE_BYTES):
        aggregate(vspace, arrivals, slot)
    return 0


cdef void* aggregate(VSpace vspace, Arrivals* arrivals, index_t slot) except NULL:
    cdef TensorState* tensor = &arrivals.tensors[slot]
    cdef int32_t count = tensor.count
    if count == 1:
        return tensor.gradient
    if count > arrivals.term_capacity:
        grow(<void**>&arrivals.terms, &arrivals.term_capacity, count, sizeof(void*))
    take_gradients(arrivals, slot)
    tensor.gradient = vspace.add(arrivals.terms, count)
    tensor.more = NO_INDEX
    tensor.count = 1
    return tensor.gradient


cdef void take_gradients(Arrivals* arrivals, index_t slot) noexcept nogil:
    """List a tensor's gradients in the order in which they came."""
    cdef TensorState* tensor = &arrivals.tensors[slot]
    cdef index_t extra = tensor.more, previous
    cdef int32_t i
    arrivals.terms[0] = tensor.gradient
    for i in range(tensor.count - 1, 0, -1):
        arrivals.terms[i] = arrivals.extra[extra].gradient
        previous = arrivals.extra[extra].previous
        arrivals.extra[extra].previous = arrivals.free_extra
        arrivals.free_extra = extra
        extra = previous
    tensor.count = 0


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
