# The declarations of Cython's own file that the package uses.

cdef extern from "<string.h>" nogil:
    void* memcpy(void*, const void*, size_t)
    void* memmove(void*, const void*, size_t)
    void* memset(void*, int, size_t)
    int memcmp(const void*, const void*, size_t)
    int strncmp(const char*, const char*, size_t)
