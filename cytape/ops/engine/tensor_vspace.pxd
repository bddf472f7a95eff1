# TensorVSpace: operations on gradients that are tensors, or the IndexedSlices of a gather.

from cytape.core.vspace cimport VSpace
from cytape.tensor.recording.state cimport Recorder

cdef class TensorVSpace(VSpace):
    pass

cdef class CountingVSpace(TensorVSpace):
    cdef object report

# `compute_gradients`, for C.
cdef list gradients_of(Recorder recorder, list targets, list sources, list seeds, bint keep,
                       report)  # called after each backward call, or None
