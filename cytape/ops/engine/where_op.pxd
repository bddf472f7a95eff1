# WhereOp: numpy.where with three arguments. One selecting loop computes values, gradients and
# tangents for boolean conditions and floats of one dtype; an entry keeps only the condition. Other
# operands use the rules declared in elementwise.py.

from cytape.core.vspace cimport BackwardCall
from cytape.tensor.values.spec cimport Spec
from cytape.tensor.values.value cimport Value

from .general_op cimport GeneralOp

cdef class WhereOp(GeneralOp):
    cdef object call3(self, condition, x, y)
    cdef bint suits(self, BackwardCall* call) except -1
