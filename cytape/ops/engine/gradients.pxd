# The VSpace of tensors: void* is a Tensor, or the IndexedSlices of a gather.

from cytape.core.vspace cimport VSpace

cdef class TensorVSpace(VSpace):
    pass
