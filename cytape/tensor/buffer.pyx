cimport cython
from libc.stdlib cimport free

cdef extern from *:
    """
    #include <stdlib.h>
    #if defined(__linux__)
    #include <sys/mman.h>
    #endif
    #define CYTAPE_HUGE_PAGE ((size_t)1 << 21)
    #define CYTAPE_CACHE_LINE ((size_t)64)

    /* Large memory in huge pages, as NumPy asks for it: fewer faults, fewer misses of the TLB. */
    static char *cytape_allocate(size_t nbytes) {
    #if defined(_MSC_VER)
        return (char *)malloc(nbytes);
    #else
        void *memory;
        int huge = nbytes >= 2 * CYTAPE_HUGE_PAGE;
        if (posix_memalign(&memory, huge ? CYTAPE_HUGE_PAGE : CYTAPE_CACHE_LINE, nbytes)) {
            return NULL;
        }
    #if defined(__linux__)
        if (huge) { madvise(memory, nbytes, MADV_HUGEPAGE); }
    #endif
        return (char *)memory;
    #endif
    }
    """
    char* cytape_allocate(size_t nbytes) noexcept

cdef enum:
    BLOCKS = 64              # kept at most, ...
    KEPT_BYTES = 1 << 28     # ... of this much memory altogether

cdef struct Block:
    char* data
    size_t nbytes

cdef Block[BLOCKS] kept      # those given back last stand last
cdef int n_kept = 0
cdef size_t kept_bytes = 0


@cython.final
@cython.no_gc
@cython.freelist(64)
cdef class Buffer:
    def __dealloc__(self):
        global n_kept, kept_bytes
        if self.data == NULL:
            return
        while n_kept and (n_kept == BLOCKS or kept_bytes + self.nbytes > KEPT_BYTES):
            free(take(0).data)  # the one that waited longest
        if self.nbytes > KEPT_BYTES:
            free(self.data)
            return
        kept[n_kept].data = self.data
        kept[n_kept].nbytes = self.nbytes
        kept_bytes += self.nbytes
        n_kept += 1


cdef Block take(int place) noexcept:
    global n_kept, kept_bytes
    cdef Block block = kept[place]
    n_kept -= 1
    kept_bytes -= block.nbytes
    for place in range(place, n_kept):
        kept[place] = kept[place + 1]
    return block


cdef Buffer new_buffer(size_t nbytes):
    cdef Buffer buffer = Buffer.__new__(Buffer)
    cdef Block block
    cdef int place
    for place in range(n_kept - 1, -1, -1):  # the last is the likeliest to be in the cache
        if nbytes <= kept[place].nbytes <= nbytes + nbytes // 8:
            block = take(place)
            buffer.data, buffer.nbytes = block.data, block.nbytes
            return buffer
    buffer.data = cytape_allocate(nbytes)
    if buffer.data == NULL:
        raise MemoryError(f"no memory for an array of {nbytes} bytes")
    buffer.nbytes = nbytes
    return buffer


def release_kept() -> int:
    """Give the memory that is kept for future arrays back to the system.

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
    released = kept_bytes
    while n_kept:
        free(take(0).data)
    return released
