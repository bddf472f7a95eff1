# Early sums: large arrays that are added as soon as both are there.

cdef enum:
    LARGE = 1 << 22  # bytes of an array for whose sake memory comes before time
