# IndexOp: x[index]. Integers, slices, None and Ellipsis are worked out here: what they select is a
# region of strided memory, from which a small result is copied, and into which, in the backward
# pass, the gradient is added. All else is left to NumPy and the rules declared in indexing.


from .general_op cimport GeneralOp

cdef class IndexOp(GeneralOp):
    pass
