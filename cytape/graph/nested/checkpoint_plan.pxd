# Checkpoint plan: the gradient of a checkpointed loop as a subprogram of two nested codes, one
# forward over some iterations and one backward, in the order of a schedule.
#
#     snapshots      stacks of each loop variable, made by a loop; their memory is reused if there
#                    is no other reader. The last one stored is the first one that is dropped
#     present state  a snapshot, or one of two records used in turn; the same for gradients

from cytape.ops.engine.general_op cimport GeneralOp

cdef class CheckpointedOp(GeneralOp):
    pass
