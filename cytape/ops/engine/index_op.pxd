# IndexOp: x[index]. Integers, slices, None and Ellipsis select a region of strided memory, which
# small results are copied from and gradients added to. One array of integers, or a mask, gathers
# rows, and the backward pass scatters them. NumPy and the rules declared in indexing.py compute
# other indices.

from cytape.core.vspace cimport BackwardCall
from cytape.ops.kernels.moves cimport Region
from cytape.tensor.values.spec cimport Spec
from cytape.tensor.tensor cimport Tensor
from cytape.tensor.values.value cimport Value
from libc.stdint cimport int64_t
from numpy cimport ndarray, npy_intp

from cytape.ops.calls.symbolic cimport SymbolicGraph

from .general_op cimport GeneralOp

cdef class IndexOp(GeneralOp):
    cdef int tell_index(self, Value x, Value out, index) except -1
    cdef Tensor build(self, SymbolicGraph graph, x, index)
    cdef Tensor picked(self, x, Value value, ndarray index)
    cdef bint backward_of_picked(self, BackwardCall* call, Value gradient, Spec spec) except -1

# Find the range of bytes of an array in C order that an index selects from; False if unknown.
cdef bint find_bytes(index, Spec spec, int64_t* start, int64_t* stop) except -1
cdef void find_ends(Region* region, Spec spec, int64_t* start, int64_t* stop) noexcept
cdef bint is_plain_slice(part) except -1  # of integers
cpdef bint holds_symbol(index) except -1
cdef bint find_region(index, const npy_intp* own_strides, Spec spec, Region* region) except -1
cdef Value selected(Value value, Spec spec, Region* region)  # a copy of a region of its shape
