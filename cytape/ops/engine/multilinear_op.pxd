# MultilinearOp: a product, linear in each operand that has a transpose, the others held fixed.

from .general_op cimport GeneralOp

cdef class MultilinearOp(GeneralOp):
    cdef readonly tuple transposes  # per operand a function, or None: it must have no tangent
    cdef readonly object core       # per operand how many axes are not of a stack, or None
    cpdef bint is_linear_in(self, Py_ssize_t i)
    cdef bint may_move(self, Py_ssize_t i) except -1
