# Buffer: memory for one array, taken from a pool and returned to it (see core/memory.pxd).

cdef class Buffer:
    cdef char* data
    cdef size_t nbytes   # at least the requested size

cdef Buffer new_buffer(size_t nbytes)

# NumPy's functions may work in such memory, too: an array allocated by NumPy is often fresh memory,
# and touching its pages takes longer than computing with it.

cdef enum:
    WORTH_LENDING = 1 << 17  # bytes of an operand; the C library maps what is larger

cdef object with_kept_memory(function, tuple operands, dict attrs)  # call it
cdef object call_with_arrays(function, tuple operands, dict attrs)  # the same if one is so large
