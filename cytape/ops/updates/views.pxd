# What a write to a tensor does to those that NumPy would have made views of the same memory: they
# are made anew, of what was written.

from cytape.tensor.links cimport Link
from cytape.tensor.tensor cimport Tensor

cdef bint is_view(Tensor tensor) except -1  # NumPy would have made it one
cdef bint may_be_view(Tensor tensor) except -1  # or whether it would depends on extents
# The views that a write to their base concerns, ahead of what was made of them, for the next two;
# the index is where it writes, None: everywhere.
cdef list views_of(Tensor base, index)
cdef int let_go(list views) except -1    # of memory, which the write has to itself then
cdef int remake(list views) except -1
cdef object layout_of(Tensor tensor)     # an array like NumPy's, of what has a link; None: unknown
cdef Link* base_link(Link* link) except NULL  # of what a write goes to
# For a view of what is gone: the tensor to be written to instead, and whether that may be.
cdef Tensor nearest_to_base(Tensor view)
cdef bint others_see(Tensor view) except -1
cdef int stand_alone(Tensor view) except -1
cdef Tensor base_of(Tensor view)         # None: it is gone
cdef object index_in_base(Tensor view, index)  # of the same; None: that takes more than slices
# Of the elements, a tensor where extents are not known; None: the view cannot be written to.
cdef object positions_in_base(Tensor view)
