# Notes of views: links between tensors that NumPy would have made views of each other.

from libc.stdint cimport int64_t

from .tensor cimport Tensor

cdef extern from "<stdint.h>":
    int64_t LAST "INT64_MAX"

# With a known range of bytes. By default the range is all of the origin, and NumPy decides whether
# it is a view.
cdef int note_region(Tensor view, Tensor origin, op, index, int64_t start, int64_t stop) except -1
cdef int note_view(Tensor view, Tensor origin, op, attrs, tuple inputs=*, int output=*) except -1
cdef int note_foreign(Tensor view) except -1
cdef bint is_foreign(Tensor tensor) noexcept
cdef bint has_views(Tensor tensor) noexcept
cdef bint may_share(Tensor tensor, int64_t start, int64_t stop) noexcept
