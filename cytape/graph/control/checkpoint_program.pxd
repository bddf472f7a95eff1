# The gradient of a loop with checkpoints in a plan: a subprogram that runs two pieces of code, one
# forward over some iterations and one back through some, as a schedule says.
#
#     snapshots    stacks of each loop variable, which a loop has made; their memory is taken over
#                  if nobody else reads them. The last one stored is the first one that goes
#     the present  state is a snapshot, or one of two records that take turns; so are the gradients

from cytape.ops.engine.general_op cimport GeneralOp

cdef class CheckpointedOp(GeneralOp):
    pass
