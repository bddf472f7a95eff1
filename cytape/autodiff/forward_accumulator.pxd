# ForwardAccumulator: the recorder that users enter for Jacobian-vector products.

from cytape.tensor.recording.state cimport TangentRecorder
from cytape.tensor.tensor cimport Tensor

cdef class ForwardAccumulator:
    cdef readonly TangentRecorder _recorder
    cdef tuple batch_shape    # the axis of directions: (n,); () without, and (0,) for none so far
    cdef Tensor a_batch       # a batch of tangents, if their number is unknown
    cdef Py_ssize_t n_followed
    cdef object __weakref__
    cdef dict __dict__        # users may give it attributes

    cdef int follow(self, primal_structure, tangent_structure) except -1
    cdef object tangent_of_any(self, primal, unconnected)
    cdef object zeros_like(self, primal)

cpdef int require_same_structure(primals, tangents) except -1
