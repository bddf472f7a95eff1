from libc.limits cimport INT_MAX

cdef extern from *:
    """
    #include <stdlib.h>
    #include <string.h>
    #if defined(__linux__)
    #include <malloc.h>
    #include <sys/mman.h>
    /* The first touch of a page costs more than recording ten ops on it. So what a dead tape leaves
       is kept for the next one (CYTAPE_KEPT bytes at most); arrays larger than a huge page are
       mapped, ask for huge pages, and grow without being copied. */
    #define CYTAPE_HUGE_PAGE ((size_t)1 << 21)
    #define CYTAPE_WORTH_KEEPING ((size_t)1 << 15)
    #define CYTAPE_KEPT ((size_t)1 << 23)
    #define CYTAPE_BLOCKS 48
    typedef struct { void *memory; size_t n_bytes; } cytape_block;
    static cytape_block cytape_kept[CYTAPE_BLOCKS], cytape_mapped[CYTAPE_BLOCKS];
    static size_t cytape_kept_bytes = 0;

    static cytape_block *cytape_find(cytape_block *blocks, void *memory) {
        int i;
        for (i = 0; i < CYTAPE_BLOCKS; i++) {
            if (blocks[i].memory == memory) { return &blocks[i]; }
        }
        return NULL;
    }

    static cytape_block *cytape_find_mapped(void *memory) {
        /* Most can be told at a glance: mapped memory begins with a page. */
        return memory == NULL || (size_t)memory % 4096 ? NULL : cytape_find(cytape_mapped, memory);
    }

    static void cytape_free(void *memory) {
        cytape_block *block;
        size_t n_bytes;
        if (memory == NULL) { return; }
        block = cytape_find_mapped(memory);
        if (block != NULL) {
            munmap(memory, block->n_bytes);
            block->memory = NULL;
            return;
        }
        n_bytes = malloc_usable_size(memory);
        if (n_bytes >= CYTAPE_WORTH_KEEPING && cytape_kept_bytes + n_bytes <= CYTAPE_KEPT) {
            block = cytape_find(cytape_kept, NULL);
            if (block != NULL) {
                block->memory = memory;
                block->n_bytes = n_bytes;
                cytape_kept_bytes += n_bytes;
                return;
            }
        }
        free(memory);
    }

    /* What a block holds; the allocator knows only those that are its own. */
    static size_t cytape_size(void *memory) {
        cytape_block *block = cytape_find_mapped(memory);
        return memory == NULL ? 0 : block == NULL ? malloc_usable_size(memory) : block->n_bytes;
    }

    static void *cytape_moved(void *memory, void *to, size_t n_bytes) {
        size_t held = cytape_size(memory);
        if (memory != NULL) {
            memcpy(to, memory, held < n_bytes ? held : n_bytes);
            cytape_free(memory);
        }
        return to;
    }

    static void *cytape_map(void *memory, size_t n_bytes) {
        cytape_block *block = cytape_find_mapped(memory);
        void *mapped;
        n_bytes = (n_bytes + CYTAPE_HUGE_PAGE - 1) & ~(CYTAPE_HUGE_PAGE - 1);
        if (block != NULL) {
            mapped = mremap(memory, block->n_bytes, n_bytes, MREMAP_MAYMOVE);
        } else {
            block = cytape_find(cytape_mapped, NULL);
            if (block == NULL) { return realloc(memory, n_bytes); }
            mapped = mmap(NULL, n_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                          -1, 0);
        }
        if (mapped == MAP_FAILED) { return NULL; }
        madvise(mapped, n_bytes, MADV_HUGEPAGE);
        if (block->memory == NULL) { cytape_moved(memory, mapped, n_bytes); }
        block->memory = mapped;
        block->n_bytes = n_bytes;
        return mapped;
    }

    static void *cytape_reallocate(void *memory, size_t n_bytes) {
        void *moved = NULL;
        size_t held;
        int i;
        if (n_bytes >= CYTAPE_HUGE_PAGE) { return cytape_map(memory, n_bytes); }
        if (n_bytes < CYTAPE_WORTH_KEEPING && cytape_find_mapped(memory) == NULL) {
            return realloc(memory, n_bytes);
        }
        for (i = 0; i < CYTAPE_BLOCKS && moved == NULL; i++) {
            held = cytape_kept[i].memory == NULL ? 0 : cytape_kept[i].n_bytes;
            if (held >= n_bytes && held <= 2 * n_bytes) {
                moved = cytape_kept[i].memory;
                cytape_kept[i].memory = NULL;
                cytape_kept_bytes -= held;
            }
        }
        if (moved == NULL) { moved = malloc(n_bytes); }
        return moved == NULL ? NULL : cytape_moved(memory, moved, n_bytes);
    }
    #else
    #define cytape_reallocate realloc
    #define cytape_free free
    #endif
    """
    void* cytape_reallocate(void* memory, size_t n_bytes) noexcept nogil
    void cytape_free(void* memory) noexcept nogil

cdef enum:
    INITIAL_CAPACITY = 64
    LARGE = 1 << 16
    TOO_LARGE = 8  # times as large as what is used


cdef bint resized(void** memory, size_t count, size_t item_size) noexcept:
    cdef size_t n_bytes = count * item_size
    cdef void* moved
    if item_size and n_bytes // item_size != count:
        return False
    moved = cytape_reallocate(memory[0], n_bytes if n_bytes else 1)
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


cdef void release(void* memory) noexcept:
    cytape_free(memory)
