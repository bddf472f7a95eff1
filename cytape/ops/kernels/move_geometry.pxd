# Regions of arrays, and moves between regions: strides, offsets, covered elements.

from cytape.tensor.values.spec cimport Spec
from numpy cimport ndarray, npy_intp

from .walk cimport MAX_AXES

cdef struct Region:  # the place of elements in an array
    int ndim
    npy_intp dims[MAX_AXES]
    npy_intp strides[MAX_AXES]
    npy_intp offset

cdef struct Move:
    int source, target
    int ndim
    npy_intp read_offset, write_offset
    npy_intp* dims            # of its own, like the strides
    npy_intp* read_strides
    npy_intp* write_strides

# Find the strides and offset of the view of the source that equals the target. False if the move
# does not write each element once or no strides exist; the offset may have changed then.
cdef bint find_view(Spec target, int ndim, const npy_intp* dims, const npy_intp* write_strides,
                    npy_intp write_offset, const npy_intp* read_strides, npy_intp* read_offset,
                    npy_intp* strides) noexcept

# Copy elements of a shape between two pieces of memory, by strides in either.
cdef int copy_strided(Spec shape, char* source, const npy_intp* read_strides, char* target,
                      const npy_intp* write_strides) except -1
cdef bint is_contiguous(Spec shape, const npy_intp* strides) noexcept  # in C order

cdef void sort_axes(Move* move) noexcept
cdef npy_intp repeats_of(Move* move, Spec spec) noexcept
cdef bint is_whole(Move* move, Spec spec) noexcept
cdef int count(Move* move, ndarray counts, npy_intp itemsize) except -1
