# numpy.add.at into zeros: what the transpose of an index with arrays of integers does.
#
# NumPy looks at every index anew, and adds single numbers; here rows are added as they lie in
# memory.
