# Moves: how elements go from some arrays to others, unchanged, one region after the other.
#
#     y = concatenate([x, z])      sources  x (2, 3), z (2, 3)     targets  y (4, 3)
#     moves    { x -> y, dims (2, 3), read  from 0 by (24, 8), written from  0 by (24, 8) }
#              { z -> y, dims (2, 3), read  from 0 by (24, 8), written from 48 by (24, 8) }
#
# A stride of zero repeats what is read, and sums where it is written. Read where they write, and
# the other way round, moves are the transpose of what they were.

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
    cdef int* by_target           # numbers of moves, sorted by targets; those of target i begin at
    cdef int* begins              # begins[i], and end at begins[i + 1]
    cdef bint fills               # each element of each target is written once
    cdef readonly bint sums       # an element of a target is written more often
    cdef bint begins_whole        # it sums, and the first move writes all of the only target, once
    cdef npy_intp repeats         # the moves write each element of the only target so often; or 0
    cdef readonly bint are_views  # each target is one region of a source, in its order
    cdef bint in_tuple            # the targets are handed out in one
    cdef Moves transposed         # computed at the first use
    cdef Py_ssize_t nbytes(self) except -1  # with those of its transpose, which may come later
    cdef int allocate(self, int n) except -1
    cdef int shape_move(self, Move* move, int ndim) except -1
    cdef int put_in_order(self, Move* move) except -1
    cdef int sort_by_target(self) except -1
    cdef int find_counts(self) except -1
    cdef Moves transpose(self)
    # A target of sources, Values that lie as the moves say they are read, or are uniform (None:
    # zeros); of a batch (n_batch >= 0) with one leading axis more. Where it `sums`, `can_sum` must
    # hold.
    cdef Value target(self, int target, list sources, npy_intp n_batch)
    cdef bint add_target(self, int target, list sources, Value total)  # to a total of its spec
    cdef int run_into(self, int target, list sources, Value out, npy_intp n_batch, bint adding,
                      bint anew) except -1
    cdef int join(self, Walk* walk, int move, char* source, char* target, bint twice,
                  bint uniform=*) noexcept

# Whether there is a loop that sums. Of many halves all beyond the first few would be rounded off.
cdef bint can_sum(Spec spec) noexcept
