# numpy.add.at into zeros: what the transpose of an index with arrays of integers does.
#
# NumPy looks at every index anew, and adds single numbers; here rows are added as they lie in
# memory.

from cytape.tensor.value cimport Value
from numpy cimport ndarray

cdef Value sum_at(tuple shape, index, ndarray terms)  # None where NumPy has to see to it
