from libc.limits cimport INT_MAX
from libc.stdlib cimport free, realloc
from libc.string cimport memcpy

cdef extern from *:
    """
    #include <stdlib.h>
    #if defined(__linux__)
    #include <malloc.h>
    #include <sys/mman.h>
    #endif
    #define CYTAPE_HUGE_PAGE ((size_t)1 << 21)
    #define CYTAPE_CACHE_LINE ((size_t)64)

    /* Give free pages within the heap back to the system: glibc does that for its end only. */
    static void cytape_trim(void) {
    #if defined(__GLIBC__)
        malloc_trim(0);
    #endif
    }

    /* Large memory in huge pages, as NumPy asks for it: fewer faults, fewer misses of the TLB. */
    static void *cytape_allocate(size_t n_bytes) {
    #if defined(_MSC_VER)
        return malloc(n_bytes);
    #else
        void *memory;
        int huge = n_bytes >= 2 * CYTAPE_HUGE_PAGE;
        if (posix_memalign(&memory, huge ? CYTAPE_HUGE_PAGE : CYTAPE_CACHE_LINE, n_bytes)) {
            return NULL;
        }
    #if defined(__linux__)
        if (huge) { madvise(memory, n_bytes, MADV_HUGEPAGE); }
    #endif
        return memory;
    #endif
    }

    #if defined(__linux__)
    /* Arrays of tapes that are larger than a huge page are mapped, ask for huge pages, and grow
       without being copied. */
    #define CYTAPE_MAPS 1
    #define CYTAPE_MAPPED 48
    typedef struct { void *memory; size_t n_bytes; } cytape_mapping;
    static cytape_mapping cytape_mapped[CYTAPE_MAPPED];

    static cytape_mapping *cytape_find(void *memory) {
        int i;
        for (i = 0; i < CYTAPE_MAPPED; i++) {
            if (cytape_mapped[i].memory == memory) { return &cytape_mapped[i]; }
        }
        return NULL;
    }

    static cytape_mapping *cytape_find_mapped(void *memory) {
        /* Most can be told at a glance: mapped memory begins with a page. */
        return memory == NULL || (size_t)memory % 4096 ? NULL : cytape_find(memory);
    }

    /* Resize what is mapped, or map something new for NULL; NULL: as it was. */
    static void *cytape_map(void *memory, size_t n_bytes) {
        cytape_mapping *mapping = cytape_find(memory);
        void *mapped;
        if (mapping == NULL) { return NULL; }
        n_bytes = (n_bytes + CYTAPE_HUGE_PAGE - 1) & ~(CYTAPE_HUGE_PAGE - 1);
        if (memory != NULL) {
            mapped = mremap(memory, mapping->n_bytes, n_bytes, MREMAP_MAYMOVE);
        } else {
            mapped = mmap(NULL, n_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                          -1, 0);
        }
        if (mapped == MAP_FAILED) { return NULL; }
        madvise(mapped, n_bytes, MADV_HUGEPAGE);
        mapping->memory = mapped;
        mapping->n_bytes = n_bytes;
        return mapped;
    }

    static int cytape_unmap(void *memory) {
        cytape_mapping *mapping = cytape_find_mapped(memory);
        if (mapping == NULL) { return 0; }
        munmap(memory, mapping->n_bytes);
        mapping->memory = NULL;
        return 1;
    }

    /* What memory holds that is mapped; 0: it is not. */
    static size_t cytape_mapped_size(void *memory) {
        cytape_mapping *mapping = cytape_find_mapped(memory);
        return mapping == NULL ? 0 : mapping->n_bytes;
    }
    #else  /* the C library does it all, and need not know what memory holds */
    #define CYTAPE_MAPS 0
    #define cytape_map(memory, n_bytes) NULL
    #define cytape_unmap(memory) 0
    #define cytape_mapped_size(memory) ((size_t)0)
    #define malloc_usable_size(memory) ((size_t)0)
    #endif
    """
    const bint MAPS "CYTAPE_MAPS"
    const size_t HUGE_PAGE "CYTAPE_HUGE_PAGE"
    const size_t CACHE_LINE "CYTAPE_CACHE_LINE"
    void cytape_trim() noexcept
    void* cytape_allocate(size_t n_bytes) noexcept
    void* cytape_map(void* memory, size_t n_bytes) noexcept
    bint cytape_unmap(void* memory) noexcept
    size_t cytape_mapped_size(void* memory) noexcept
    size_t malloc_usable_size(void* memory) noexcept

cdef enum:
    INITIAL_CAPACITY = 64
    LARGE = 1 << 16
    TOO_LARGE = 8  # ratio of capacity to use from which an array shrinks
    WORTH_KEEPING = 1 << 15  # bytes of an array


# ---- blocks

cdef void* another_block(size_t* nbytes, size_t at_most) noexcept:
    """Take the most recent of the smallest blocks that fit, or allocate a new one."""
    cdef size_t wanted = nbytes[0]
    cdef int place, best = -1
    if wanted >= 2 * HUGE_PAGE:  # malloc maps up to one more, to begin with one, and `release` sees
        at_most = max(at_most, wanted + HUGE_PAGE)
    for place in range(keeper.n - 1, -1, -1):
        if wanted <= keeper.blocks[place].nbytes <= at_most:
            best = place
            if keeper.blocks[place].nbytes == wanted:
                break
            at_most = keeper.blocks[place].nbytes - 1
    if best < 0:
        return cytape_allocate(wanted)
    nbytes[0] = keeper.blocks[best].nbytes
    return removed(best)


cdef void keep_instead(void* memory, size_t nbytes) noexcept:
    """Add a block to the pool, freeing the oldest ones to make room."""
    if nbytes > KEPT_BYTES:
        free(memory)
        return
    while keeper.n == BLOCKS or keeper.nbytes + nbytes > KEPT_BYTES:
        keeper.freed += keeper.blocks[0].nbytes
        free(removed(0))
    if keeper.freed > TRIMMED_BYTES:
        keeper.freed = 0
        cytape_trim()
    give_back_block(memory, nbytes)


cdef void* removed(int place) noexcept:
    cdef void* memory = keeper.blocks[place].memory
    keeper.n -= 1
    keeper.nbytes -= keeper.blocks[place].nbytes
    for place in range(place, keeper.n):
        keeper.blocks[place] = keeper.blocks[place + 1]
    return memory


cdef size_t release_blocks() noexcept:
    cdef size_t released = keeper.nbytes
    while keeper.n:
        free(removed(keeper.n - 1))
    cytape_trim()
    return released


# ---- arrays

cdef void* reallocated(void* memory, size_t nbytes) noexcept:
    """Resize like `realloc`, also for mapped memory and for blocks larger than requested."""
    cdef size_t held = cytape_mapped_size(memory), size = nbytes
    cdef void* moved
    if held:
        if nbytes >= HUGE_PAGE:
            return cytape_map(memory, nbytes)
    elif not MAPS or nbytes < WORTH_KEEPING:
        return realloc(memory, nbytes)
    else:
        held = malloc_usable_size(memory)
        if nbytes <= held <= 2 * nbytes:
            return memory
    if nbytes < HUGE_PAGE:
        moved = another_block(&size, 2 * nbytes)
    else:
        moved = cytape_map(NULL, nbytes)
        if moved == NULL:  # mapped already, or no memory
            return realloc(memory, nbytes)
    if moved != NULL and memory != NULL:
        memcpy(moved, memory, min(held, nbytes))
        release(memory)
    return moved


cdef void release(void* memory) noexcept:
    cdef size_t held
    if memory == NULL or cytape_unmap(memory):
        return
    held = malloc_usable_size(memory)
    if held >= WORTH_KEEPING and <size_t>memory % CACHE_LINE == 0:  # realloc need not align
        give_back_block(memory, held)
    else:
        free(memory)


cdef bint resized(void** memory, size_t count, size_t item_size) noexcept:
    cdef size_t n_bytes = count * item_size
    cdef void* moved
    if item_size and n_bytes // item_size != count:
        return False
    moved = reallocated(memory[0], n_bytes if n_bytes else 1)
    if moved == NULL:
        return False
    memory[0] = moved
    return True


cdef int resize(void** memory, size_t count, size_t item_size) except -1:
    if not resized(memory, count, item_size):
        raise MemoryError(f"cannot allocate {count} items of {item_size} bytes for a tape")
    return 0


cdef inline Py_ssize_t larger(index_t capacity, Py_ssize_t at_least) noexcept nogil:
    cdef Py_ssize_t more = capacity if capacity < LARGE else capacity // 2
    return max(at_least, capacity + more, <Py_ssize_t>INITIAL_CAPACITY)


cdef int grow(void** memory, index_t* capacity, Py_ssize_t at_least, size_t item_size) except -1:
    cdef Py_ssize_t wanted = larger(capacity[0], at_least)
    if wanted > INT_MAX:
        raise OverflowError(f"a tape holds at most {INT_MAX} entries")
    resize(memory, wanted, item_size)
    capacity[0] = <index_t>wanted
    return 0


cdef bint has_grown(void** memory, index_t* capacity, Py_ssize_t at_least,
                    size_t item_size) noexcept:
    cdef Py_ssize_t wanted = larger(capacity[0], at_least)
    if wanted > INT_MAX or not resized(memory, wanted, item_size):
        return False
    capacity[0] = <index_t>wanted
    return True


cdef void shrink(void** memory, index_t* capacity, Py_ssize_t used, size_t item_size) noexcept:
    cdef Py_ssize_t wanted = max(2 * used, <Py_ssize_t>INITIAL_CAPACITY)
    if capacity[0] // TOO_LARGE <= wanted:
        return
    if resized(memory, wanted, item_size):
        capacity[0] = <index_t>wanted
