# CondOp and LoopOp: ops that run one of two bodies, or one body repeatedly. Their attributes are
# the bodies, and the positions of each body's inputs among those of the op.

from cytape.graph.run.value_op cimport ValueOp

cdef class CondOp(ValueOp):
    pass

cdef class LoopOp(ValueOp):
    pass
