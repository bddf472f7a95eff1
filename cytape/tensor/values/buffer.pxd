# Buffer: memory for one array, taken from a pool and returned to it (see core/memory.pxd).

cdef class Buffer:
    cdef char* data
    cdef size_t nbytes   # at least the requested size

cdef Buffer new_buffer(size_t nbytes)

# NumPy's functions can allocate such memory, too: NumPy's arrays are often fresh memory, whose
# first touch takes longer than the computation.

cdef enum:
    WORTH_LENDING = 1 << 17  # bytes of an operand; the C library maps larger blocks

cdef object with_kept_memory(function, tuple operands, dict attrs)  # call it
cdef object call_with_arrays(function, tuple operands, dict attrs)  # if an operand is so large
