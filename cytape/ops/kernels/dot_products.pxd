# Products of matrices: the loops behind numpy.matmul, that is BLAS, but where nothing is summed.
#
# A product over an inner axis of one element is an outer product: each element of the result is one
# product of two numbers. BLAS packs and blocks its operands for that as for any other; a loop that
# writes row after row takes no longer than the memory does.
#
# All of these loops have the signature of NumPy's for "(m,n),(n,p)->(m,p)": dimensions are how many
# products, m, n, p; strides those from one product to the next of the operands and the result, then
# of each its rows' and its columns'. The result is in C order, without gaps.

from numpy cimport npy_intp

from .ufunc_loops cimport Loop

cdef Loop* product_loop(int type_num, npy_intp inner) noexcept  # of float64 or float32
cdef Loop* add_outer_loop(int type_num) noexcept  # adds an outer product to what is there
