# Allocation: growth and shrinking of all C arrays, and a pool of freed blocks.
#
# The first touch of a fresh page costs more than recording ten ops, or than most operations on the
# data in it. So blocks of large arrays (of tapes and of values) are pooled and reused for requests
# of about the same size.
#
# A pointer is replaced only after the allocation succeeded, so that a MemoryError leaves its owner
# valid; the owner updates its capacity last, and frees the memory in __dealloc__.

from .typedefs cimport index_t

# Resize memory[0] to `count` items; MemoryError (also on overflow) leaves it as it was.
cdef int resize(void** memory, size_t count, size_t item_size) except -1
cdef bint resized(void** memory, size_t count, size_t item_size) noexcept  # False: unchanged

# Make room for at least `at_least` items: doubles a small array, grows a large one by half.
cdef int grow(void** memory, index_t* capacity, Py_ssize_t at_least, size_t item_size) except -1

# The same for callers that cannot raise; False: unchanged.
cdef bint has_grown(void** memory, index_t* capacity, Py_ssize_t at_least,
                    size_t item_size) noexcept

# Shrink an array with far more room than items. If that fails the array stays unchanged.
cdef void shrink(void** memory, index_t* capacity, Py_ssize_t used, size_t item_size) noexcept

cdef void release(void* memory) noexcept

# ---- blocks: memory that is not resized

cdef enum:
    BLOCKS = 64              # kept at most, ...
    KEPT_BYTES = 1 << 28     # ... with this many bytes in all
    TRIMMED_BYTES = 1 << 27  # freed instead of kept, until the system gets their pages back

cdef struct Block:
    void* memory
    size_t nbytes

cdef struct Keeper:
    size_t nbytes
    size_t freed  # bytes, since the heap was trimmed
    int n
    Block[BLOCKS] blocks  # most recently returned last

cdef Keeper keeper

# Slow parts of the functions below: blocks of up to `at_most` bytes; a full pool.
cdef void* another_block(size_t* nbytes, size_t at_most) noexcept
cdef void keep_instead(void* memory, size_t nbytes) noexcept
cdef size_t release_blocks() noexcept  # all in the pool; returns their number of bytes


cdef inline void* take_block(size_t* nbytes) noexcept:
    """Return a block aligned to a cache line, or NULL if there is no memory.

    A block from the pool may be a little larger than requested; nbytes is set to its true size.
    """
    cdef size_t at_most = nbytes[0] + nbytes[0] // 8
    cdef Block* last = &keeper.blocks[keeper.n - 1]  # likely in the cache
    if keeper.n == 0 or last.nbytes < nbytes[0] or last.nbytes > at_most:
        return another_block(nbytes, at_most)
    keeper.n -= 1
    keeper.nbytes -= last.nbytes
    nbytes[0] = last.nbytes
    return last.memory


cdef inline void give_back_block(void* memory, size_t nbytes) noexcept:
    if keeper.n == BLOCKS or keeper.nbytes + nbytes > KEPT_BYTES:
        keep_instead(memory, nbytes)
        return
    keeper.blocks[keeper.n].memory = memory
    keeper.blocks[keeper.n].nbytes = nbytes
    keeper.nbytes += nbytes
    keeper.n += 1
