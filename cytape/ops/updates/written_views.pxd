# Views of tensors that are written to: tensors that NumPy would make views of the written memory
# are recomputed from the new values.

from cytape.tensor.tensor cimport Tensor

# Views that change with a write to their base at an index (None: the whole), each before the views
# made of it. `let_go` releases their memory before the write, `remake` computes them anew.
cdef list views_of(Tensor base, index)
cdef int let_go(list views) except -1
cdef int remake(list views) except -1
# The tensor to be written to instead of a view whose base is gone.
cdef Tensor nearest_to_base(Tensor view)
cdef bint others_see(Tensor view) except -1
cdef int stand_alone(Tensor view) except -1
cdef Tensor base_of(Tensor view)         # None: it is gone
cdef object index_in_base(Tensor view, index)  # None if it is not composed of slices
# Tensors that are views of a base depending on extents at run time; the base of such a view, None
# if it is gone; whether it is a view in a run (None: yes), the places of its elements in the base,
# and their values.
cdef list views_in_some_runs(Tensor base)
cdef Tensor base_in_some_runs(Tensor view)
cdef tuple seen_in_some_runs(Tensor view, Tensor base)
# Positions of the elements, a tensor for unknown extents; None: the view cannot be written to.
cdef object positions_in_base(Tensor view)
