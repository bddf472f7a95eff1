# The declarations of Cython's own file that the package uses.

cdef extern from "<stdlib.h>" nogil:
    void* malloc(size_t)
    void* calloc(size_t, size_t)
    void* realloc(void*, size_t)
    void free(void*)
    void qsort(void*, size_t, size_t, int (*)(const void*, const void*) noexcept)
    long long llabs(long long)
