# Moves: copies of regions of some arrays to regions of others.
#
#     y = concatenate([x, z])      sources  x (2, 3), z (2, 3)     targets  y (4, 3)
#     moves    { x -> y, dims (2, 3), read  from 0 by (24, 8), written from  0 by (24, 8) }
#              { z -> y, dims (2, 3), read  from 0 by (24, 8), written from 48 by (24, 8) }
#
# A read stride of zero repeats elements, a write stride of zero sums them. Exchanging reads and
# writes transposes the moves.

from cytape.tensor.values.spec cimport Spec
from cytape.tensor.values.value cimport Value
from numpy cimport npy_intp

from .move_geometry cimport Move, Region, find_view
from .walk cimport Walk

cdef enum:
    COPIED_BYTES = 512  # smaller results are copied rather than views: their readers are faster

cdef class Moves:
    cdef readonly tuple sources, targets  # Specs, of one dtype
    cdef Move* moves
    cdef int n_moves
    cdef int* by_target           # moves sorted by target; those of target i begin at
    cdef int* begins              # begins[i], and end at begins[i + 1]
    cdef bint fills               # each element of each target is written once
    cdef readonly bint sums       # an element of a target is written more often
    cdef bint begins_whole        # sums, and the first move writes all of the only target once
    cdef npy_intp repeats         # writes to each element of the only target; 0: elements differ
    cdef readonly bint are_views  # each target is one region of a source
    cdef bint in_tuple            # results are returned in a tuple
    cdef Moves transposed         # computed at the first use
    cdef Py_ssize_t nbytes(self) except -1  # with the transpose, even before that is computed
    cdef int allocate(self, int n) except -1
    cdef int shape_move(self, Move* move, int ndim) except -1
    cdef int put_in_order(self, Move* move) except -1
    cdef int sort_by_target(self) except -1
    cdef int find_counts(self) except -1
    cdef Moves transpose(self)
    # Compute a target from sources: Values in the layout of the moves or uniform, None for zeros.
    # n_batch >= 0: all have a batch axis of that length. If the moves sum, `can_sum` must hold.
    cdef Value target(self, int target, list sources, npy_intp n_batch)
    cdef bint add_target(self, int target, list sources, Value total)  # to a total of its spec
    cdef int run_into(self, int target, list sources, Value out, npy_intp n_batch, bint adding,
                      bint anew) except -1
    cdef int join(self, Walk* walk, int move, char* source, char* target, bint twice,
                  bint uniform=*) noexcept

# Whether there is a loop that sums; not for half precision, where rounding would lose late terms.
cdef bint can_sum(Spec spec) noexcept
