# Ops that run traced functions: one of two (CondOp), or one again and again (LoopOp). Their
# attributes say which, and which of the op's inputs each function takes.

from cytape.graph.run.executor cimport ValueOp

cdef class CondOp(ValueOp):
    pass

cdef class LoopOp(ValueOp):
    pass
