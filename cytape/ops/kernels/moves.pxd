# Moves: how elements go from arrays to others, each unchanged: region by region.
#
#     sources  x (2, 3)            targets  y (4, 3)          y = concatenate([x, z])
#              z (2, 3)
#     moves    { x -> y, dims (2, 3), read from 0 by (24, 8), written from 0 by (24, 8) }
#              { z -> y, dims (2, 3), read from 0 by (24, 8), written from 48 by (24, 8) }
#
# A stride of zero repeats where it is read, and adds up where it is written. Turned round, with
# sources for targets, moves are the adjoint of what they were.

from cytape.tensor.spec cimport Spec
from cytape.tensor.value cimport Value
from numpy cimport npy_intp

from .walk cimport MAX_AXES, Walk

cdef struct Region:  # where in an array elements lie
    int ndim
    npy_intp dims[MAX_AXES]
    npy_intp strides[MAX_AXES]
    npy_intp offset

cdef struct Move:
    int source, target
    int ndim
    npy_intp read, write    # offsets
    npy_intp* dims          # then as many strides to read by, then to write by

cdef class Moves:
    cdef readonly tuple sources, targets   # Specs, of one dtype
    cdef int n_moves
    cdef Move* moves
    cdef npy_intp* numbers
    cdef bint fills           # each element of each target is written, once
    cdef bint spreads         # each element of each source is read, once
    cdef bint views           # each target is one region of one source, in its order
    cdef Moves turned         # the adjoint, once somebody asked for it
    cdef Moves adjoint(self)
    # These are for values in C order, of the specs of sources (None: zeros), or with one leading
    # axis more. None: there is no loop for that.
    cdef list apply(self, list sources)
    # Add to a total instead, which has the spec of a target.
    cdef bint add_to(self, int target, list sources, Value total)
    cdef int plan_move(self, int i, Walk* walk) noexcept
