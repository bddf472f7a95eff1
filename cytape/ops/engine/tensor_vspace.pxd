# TensorVSpace: operations on gradients that are tensors, or the IndexedSlices of a gather.

from cytape.core.vspace cimport VSpace
from cytape.tensor.recording.state cimport Recorder

cdef class TensorVSpace(VSpace):
    pass

# `compute_gradients`, for C.
cdef list gradients_of(Recorder recorder, list targets, list sources, list seeds, bint keep)
