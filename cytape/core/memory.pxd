# All growth and shrinking of all C arrays. A pointer is replaced only when the allocation
# succeeded, so that a MemoryError leaves its owner valid; the owner updates its capacity last and
# releases in __dealloc__.

from .typedefs cimport index_t

# Resize memory[0] to `count` items; MemoryError (also on overflow) leaves it as it was.
cdef int resize(void** memory, size_t count, size_t item_size) except -1
cdef bint resized(void** memory, size_t count, size_t item_size) noexcept  # False: as it was

# Make room for at least so many items: twice as many, later half as many again.
cdef int grow(void** memory, index_t* capacity, Py_ssize_t at_least, size_t item_size) except -1

# The same where an error could not be raised; False: it is as it was.
cdef bint has_grown(void** memory, index_t* capacity, Py_ssize_t at_least,
                    size_t item_size) noexcept

# Give memory back if there is room for many times so many items. Where that fails all is as it was.
cdef void shrink(void** memory, index_t* capacity, Py_ssize_t used, size_t item_size) noexcept

cdef void release(void* memory) noexcept
