# Early sums: two large arrays are added as soon as both are computed. A large sum of many arrays
# becomes sums of two first.

cdef enum:
    LARGE = 1 << 22  # bytes; from this size on, freeing memory early matters more than time
