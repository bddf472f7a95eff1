# Sums in memory: of gradients that meet, and of a gradient over the axes that were broadcast.

from cytape.tensor.values.spec cimport Spec
from cytape.tensor.values.value cimport Value
from numpy cimport npy_intp

from .ufunc_loops cimport Loop

cdef void add_to(int type_num, npy_intp itemsize, npy_intp n, char* total,
                 char* terms) noexcept nogil  # all contiguous
cdef void add_to_one(int type_num, npy_intp itemsize, npy_intp n, char* total,
                     char* terms) noexcept nogil  # one number: pairwise
cdef double sum_of(int type_num, npy_intp n, const char* terms) noexcept nogil  # of floats; faster
cdef Loop* add_loop_of(Spec spec) noexcept  # NULL: none that is certain to do what NumPy does
cdef Value zeros(Spec spec)
# The following return False, or None, and do nothing, where NumPy has to see to it.
cdef bint add_sum(Value total, Value terms) noexcept  # summed along the axes where total is shorter
cdef Value sum_to(Value terms, Spec spec)             # the same, from nothing
cdef Value plus(Value a, Value b)                     # two of one spec
