# Loops of matrix products: numpy.matmul's, which calls BLAS, and one for outer products.
#
# An outer product has an inner axis of length one. BLAS would pack and block its operands; the loop
# here writes row after row, at the speed of memory.
#
# All loops have NumPy's signature for "(m,n),(n,p)->(m,p)". Dimensions: number of products, m, n,
# p. Strides: of both operands and the result from product to product, then row and column strides
# of each. The result is contiguous, in C order.

from numpy cimport npy_intp

from .ufunc_loops cimport Loop

cdef Loop* product_loop(int type_num, npy_intp inner) noexcept  # of float64 or float32
cdef Loop* add_outer_loop(int type_num) noexcept  # adds an outer product to the result
