# StructuralOp: an op that only moves elements. Its declaration pairs regions of results and of
# operands; calls, derivatives and plans follow from these moves, which are computed once for each
# layout of the operands.

from cpython.ref cimport PyObject
from cytape.ops.kernels.moves cimport Moves
from cytape.tensor.values.value cimport Value

from .general_op cimport GeneralOp

cdef class StructuralOp(GeneralOp):
    cdef readonly object pieces
    cdef readonly str key  # key by which its transpose finds it
    cdef object failure    # of a user's pieces; raised if the call itself succeeds
    cdef dict known        # a layout, as a tuple, and attributes -> Moves, None if there are none
    cdef Py_ssize_t known_nbytes
    cdef list recent       # Moves, specs and attributes of the last calls
    # None if NumPy must compute the result: mixed dtypes, errors, results that are not regions.
    cdef Moves moves_of(self, tuple layout, dict attrs)
    cdef Moves moves_of_values(self, list values, dict attrs)
    cdef int remember(self, tuple key, Moves moves) except -1
    cdef Moves new_moves(self, tuple layout, dict attrs)
    cdef Moves moves_in_order(self, PyObject** specs, Py_ssize_t n, dict attrs)
    cdef Value moved(self, Moves moves, int target, list read)
    cdef tuple call_many(self, Moves moves, list read, list values, dict attrs)
    cdef dict attrs_to_keep(self, dict attrs)
    cdef list moved_tangents(self, list inputs, list tangents, dict attrs, bint batched)

cdef tuple layout_of(list values)  # specs, then strides of operands not in C order
