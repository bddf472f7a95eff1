# Ops that run traced functions: one of two (CondOp), or one repeatedly (LoopOp). Their attributes
# hold the functions, and the positions of each function's inputs among those of the op.

from cytape.graph.run.value_op cimport ValueOp

cdef class CondOp(ValueOp):
    pass

cdef class LoopOp(ValueOp):
    pass
