# Loops of normalisation over some axes, and of its derivative.
#
# A contiguous array is read as one of four axes, and normalised over the second and the fourth one:
# layers have one group and n1 = 1, batches n2 = 1, groups of channels all four. Sums are those of
# double precision or better.

from numpy cimport npy_intp

cdef extern from *:
    """
    typedef struct { npy_intp outer, n1, groups, n2; } cytape_axes;
    """
    ctypedef struct Axes "cytape_axes":
        npy_intp outer, n1, groups, n2
