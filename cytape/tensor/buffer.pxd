# Buffer: memory for one array. What a dead one leaves is kept for the next (see core/memory.pxd).

cdef class Buffer:
    cdef char* data
    cdef size_t nbytes   # at least what was asked for

cdef Buffer new_buffer(size_t nbytes)

# NumPy's functions may work in such memory, too. What NumPy allocates by itself is often new to the
# process, page by page, which takes longer than to compute with it.

cdef enum:
    WORTH_LENDING = 1 << 17  # bytes of an operand; the C library maps what is larger

cdef object with_kept_memory(function, tuple operands, dict attrs)  # call it
cdef object call_with_arrays(function, tuple operands, dict attrs)  # the same if one is so large
