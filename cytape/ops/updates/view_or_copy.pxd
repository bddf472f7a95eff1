# Whether NumPy would have made a view or a copy, by the ops that made a tensor. Where extents are
# known only at run time, the ops are called with arrays of example extents.

from cytape.tensor.tensor cimport Tensor
from cytape.tensor.values.spec cimport Spec
from cytape.tensor.view_links cimport Link

cdef enum:
    LIKELY = 24   # examples of extents that are known only at run time
    UNLIKELY = 4

cdef bint is_view(Tensor tensor) except -1  # NumPy would have made it one
cdef bint may_overlap(Tensor view) except -1  # with itself: an element may be at several places
cdef bint may_be_view(Tensor tensor) except -1  # or whether it would depends on extents
cdef Link* base_link(Link* link) except NULL  # of the array that a write goes to
cdef bint shows_origin(Link* link) except -1
cdef bint is_raveled(Link* link) except -1
# An array with strides as NumPy's would have them; None: they are known only at run time.
cdef object stand_in(Link* link, extent)
cdef object example_of(Spec spec, extent)
# Results of the op that made a view: for an array of example extents; for any array or tensor.
cdef object result_on(Link* link, memory, extent)
cdef object called(Link* link, x)
