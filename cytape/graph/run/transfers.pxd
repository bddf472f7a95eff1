# Transfers: instructions that move rows between an array and a part of it, at places that are
# operands or known to the plan.
#
#     READ    data: array, places..., part        WRITE, ADD    part, places..., array
#                                                 CLEAR         array, places..., array
#
# Rows consist of the axes behind the indexed ones; the axes in front of those are blocks of rows.

from cytape.ops.kernels.scatter cimport Scatter
from cytape.ops.kernels.walk cimport MAX_AXES
from libc.stdint cimport int32_t
from numpy cimport npy_intp

from .instructions cimport Subprogram
from .plan_code cimport Code

ctypedef int (*Refusal)(npy_intp place, int axis, npy_intp extent) noexcept with gil

cdef enum What:
    READ
    ADD
    WRITE
    CLEAR
    TAKE     # places known to the plan: read, or summed up in zeros
    SUM
    COUNT    # SUM of one repeated item: its multiples, by how often each place occurs
    CHOOSE   # the elements that a known mask selects
    PUT

cdef struct IndexedAxis:
    npy_intp extent, stride        # stride in rows
    npy_intp number                # the place, unless an operand holds places
    int operand                    # position of that operand; 0: none
    int step                       # 0: one place for all rows

cdef struct Transfer:
    What what
    Scatter job                    # blocks, rows, and the known places
    int lead, n_indexed            # axes in front of the indexed ones, and those
    int last                       # the last operand
    IndexedAxis axes[MAX_AXES]
    npy_intp n_items, itemsize     # of an array with a mask
    const unsigned char* marks     # counts, or the mask
    int most                       # the largest count
    Refusal refuse                 # raises the error of a place out of bounds

cdef class TransferProgram(Subprogram):
    cdef Transfer it
    cdef object kept               # owner of places and marks

# These return False, with no effect, if Python must be called. Inputs of the node from `first` on
# hold the places; "@0" in the index is the first of them.
cdef bint read(Code code, int32_t node, index, int first, Refusal refuse) except -1
# is_exact: round terms at one place as in a call, summed before any others are added to them.
cdef bint add(Code code, int32_t node, index, int first, Refusal refuse, bint is_exact) except -1
# Write to the first input's memory, or to a copy; where the second input holds places: clear.
cdef bint write(Code code, int32_t node, index, int first, Refusal refuse) except -1
# The same for an index whose arrays the plan knows: copy a part; add a part to zeros.
cdef bint take(Code code, int32_t node, index) except -1
cdef bint sum_up(Code code, int32_t node, index) except -1

cdef bint defer(Code code, int32_t out, int32_t x, list operands) except -1
cdef bint is_placed(Code code, int32_t symbol) except -1     # in memory, of known shape
cdef int out_of_bounds(npy_intp place, int axis, npy_intp extent) noexcept with gil
