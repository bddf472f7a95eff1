# Ties: the elements of a line that equal the line's extremum, and their shares of the gradient.
#
# An array in C order consists of blocks of `n` rows of `inner` elements; a line is a column of a
# block. A vector is one block, with one element per row.

from numpy cimport ndarray, npy_intp

# Find the number of blocks, of rows of a block, and of elements of a row; False if the axes of the
# lines are not adjacent.
cdef bint lines_of(ndarray x, axis, npy_intp* lines) except -1
cdef ndarray in_c_order(x)
