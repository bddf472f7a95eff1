# The gradient of a loop with checkpoints in a plan: a subprogram that runs two nested programs, one
# forward over some iterations and one backward, as a schedule prescribes.
#
#     snapshots      stacks of each loop variable, made by a loop; their memory is reused if there
#                    is no other reader. The last one stored is the first one that is dropped
#     present state  a snapshot, or one of two records used in turn; the same for gradients

from cytape.ops.engine.general_op cimport GeneralOp

cdef class CheckpointedOp(GeneralOp):
    pass
