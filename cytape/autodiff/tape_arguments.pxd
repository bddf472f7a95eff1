# Structures of tensors as arguments of tapes and accumulators.

from cytape.tensor.recording.state cimport Recorder

cdef list leaves_of(structure)
cdef in_places(structure, list found)
cdef int require_tensor_leaf(str role, leaf) except -1
cdef int require_tensor(str role, value) except -1
cdef int warn_of_none(Recorder recorder, list gradients, list targets, list sources) except -1
