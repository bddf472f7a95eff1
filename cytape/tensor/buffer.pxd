# Buffer: memory for one array. What a dead one leaves is kept for the next (see core/memory.pxd).

cdef class Buffer:
    cdef char* data
    cdef size_t nbytes   # at least what was asked for

cdef Buffer new_buffer(size_t nbytes)
