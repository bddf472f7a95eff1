cimport cython
from cytape.core.memory cimport give_back_block, release_blocks, take_block


@cython.final
@cython.no_gc
@cython.freelist(64)
cdef class Buffer:
    def __dealloc__(self):
        if self.data != NULL:
            give_back_block(self.data, self.nbytes)


cdef Buffer new_buffer(size_t nbytes):
    cdef Buffer buffer = Buffer.__new__(Buffer)
    buffer.nbytes = nbytes
    buffer.data = <char*>take_block(&buffer.nbytes)
    if buffer.data == NULL:
        raise MemoryError(f"no memory for an array of {nbytes} bytes")
    return buffer


def release_kept() -> int:
    """Give all memory that is kept for reuse back to the system.

    Dead tensors and dead tapes leave it for the next ones, up to 256 MiB.

    Returns
    -------
    int
        How many bytes that were.

    Examples
    --------
    >>> import cytape
    >>> x = cytape.constant([[1.0] * 100] * 100) * 2.0
    >>> del x
    >>> release_kept() >= 80_000
    True
    >>> release_kept()
    0
    """
    return release_blocks()
