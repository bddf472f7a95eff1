# Interpolation of arrays by B-splines, and its transpose.
#
# A point takes from each axis `order + 1` neighbouring elements, its taps, with weights that are
# values (or derivatives) of a B-spline. The interpolated number is the sum over all products of
# taps. The transpose adds a number to the same elements, times the same weights.

from numpy cimport npy_intp

cdef enum:
    MOST_TAPS = 6  # of splines of order 5
    MOST_AXES = 32

# Boundary modes, with the numbers that SciPy gives them.
cdef enum Mode:
    NEAREST = 0
    WRAP = 1
    REFLECT = 2
    MIRROR = 3
    CONSTANT = 4
    GRID_WRAP = 5
    GRID_CONSTANT = 6

# Taps of a point along one axis.
cdef struct Taps:
    npy_intp[MOST_TAPS] offsets  # in elements
    double[MOST_TAPS] weights
    double[MOST_TAPS] slopes  # weights of one more derivative
