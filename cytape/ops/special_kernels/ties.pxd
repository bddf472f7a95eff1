# Which elements of lines are equal to the one number that stands for the line.
#
# An array in C order is blocks of `n` rows of `inner` elements, and a line is what lies in one
# column of a block: of a vector there is one block, and its rows are elements.

from numpy cimport ndarray, npy_intp

# How many blocks there are, of how many rows, of how many elements; False if the axes of the lines
# are not side by side.
cdef bint lines_of(ndarray x, axis, npy_intp* lines) except -1
cdef ndarray in_c_order(x)
