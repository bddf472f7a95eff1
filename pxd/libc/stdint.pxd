# The declarations of Cython's own file that the package uses.

cdef extern from "<stdint.h>" nogil:
    ctypedef unsigned char uint8_t
    ctypedef signed int int32_t
    ctypedef signed long long int64_t
    ctypedef unsigned long long uint64_t

    int64_t INT64_MAX
