# Structures of tensors as arguments of tapes and accumulators.

cdef list leaves_of(structure)
cdef in_places(structure, list found)
cdef int require_tensor_leaf(str role, leaf) except -1
cdef int require_tensor(str role, value) except -1
