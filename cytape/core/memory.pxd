# All growth of all C arrays. A pointer is replaced only when the allocation succeeded, so that a
# MemoryError leaves its owner valid; the owner updates its capacity last and frees in __dealloc__.

from .typedefs cimport index_t
from libc.limits cimport INT_MAX
from libc.stdlib cimport realloc

cdef extern from *:
    """
    #if defined(__linux__)
    #include <sys/mman.h>
    /* First touches of 4 KiB pages would dominate the cost of recording long programs. */
    static void cytape_advise_huge(void *memory, size_t n_bytes) {
        size_t page = (size_t)1 << 21, start = ((size_t)memory + page - 1) & ~(page - 1);
        size_t end = ((size_t)memory + n_bytes) & ~(page - 1);
        if (end > start) { madvise((void *)start, end - start, MADV_HUGEPAGE); }
    }
    #else
    static void cytape_advise_huge(void *memory, size_t n_bytes) { (void)memory; (void)n_bytes; }
    #endif
    """
    void cytape_advise_huge(void* memory, size_t n_bytes) noexcept nogil

cdef enum:
    HUGE_PAGE_THRESHOLD = 1 << 22
    INITIAL_CAPACITY = 64
    LARGE = 1 << 16


cdef inline int resize(void** memory, size_t count, size_t item_size) except -1 nogil:
    """Resize ``memory[0]`` to ``count`` items; MemoryError (also on overflow) leaves it as it was."""
    cdef size_t n_bytes = count * item_size
    if item_size and n_bytes // item_size != count:
        with gil:
            raise MemoryError(f"cannot allocate {count} items of {item_size} bytes")
    cdef void* resized = realloc(memory[0], n_bytes if n_bytes else 1)
    if resized == NULL:
        with gil:
            raise MemoryError(f"cannot allocate {n_bytes} bytes for a tape")
    memory[0] = resized
    if n_bytes >= HUGE_PAGE_THRESHOLD:
        cytape_advise_huge(resized, n_bytes)
    return 0


cdef inline int grow(void** memory, index_t* capacity, Py_ssize_t at_least, size_t item_size) except -1:
    """Make room for at least so many items: twice as many, later half as many again."""
    cdef Py_ssize_t more = capacity[0] if capacity[0] < LARGE else capacity[0] // 2
    cdef Py_ssize_t wanted = max(at_least, capacity[0] + more, <Py_ssize_t>INITIAL_CAPACITY)
    if wanted > INT_MAX:
        raise OverflowError(f"a tape holds at most {INT_MAX} entries")
    resize(memory, wanted, item_size)
    capacity[0] = <index_t>wanted
    return 0
