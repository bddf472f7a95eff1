# Sums in memory: of several gradients, and of a gradient over broadcast axes.

from cytape.tensor.values.spec cimport Spec
from cytape.tensor.values.value cimport Value
from numpy cimport npy_intp

from .ufunc_loops cimport Loop

# Terms are contiguous. A stride of 0 adds all to one number, pairwise.
cdef void add_to(int type_num, npy_intp stride, npy_intp itemsize, npy_intp n, char* total,
                 char* terms) noexcept nogil
cdef double sum_of(int type_num, npy_intp n, const char* terms) noexcept nogil  # of floats; faster
cdef Loop* add_loop_of(Spec spec) noexcept  # NULL if results might differ from NumPy's
cdef Value zeros(Spec spec)
# The following return False or None, with no effect, if NumPy must compute the sum.
cdef bint add_sum(Value total, Value terms) noexcept  # sums terms over axes that total lacks
cdef Value sum_to(Value terms, Spec spec)             # a new total
cdef Value plus(Value a, Value b)                     # two of one spec
