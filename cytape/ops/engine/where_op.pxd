# WhereOp: numpy.where with three arguments. Boolean conditions and floats of one dtype go through a
# loop that selects, forward, backward and for tangents; an entry keeps the condition only. All else
# is left to the rules declared in elementwise.

from cytape.core.vspace cimport BackwardCall
from cytape.tensor.values.spec cimport Spec
from cytape.tensor.values.value cimport Value

from .general_op cimport GeneralOp

cdef class WhereOp(GeneralOp):
    cdef object call3(self, condition, x, y)
    cdef bint suits(self, BackwardCall* call) except -1
