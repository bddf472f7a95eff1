# Derivatives of products by division, for data whose factors and products are all normal numbers.
#
# The layout of lines and of their slices is that of `line_products`.

from numpy cimport npy_intp

# Write the gradient of the product of each slice, or given tangents `t` the tangent. False, with
# an unfinished result, if a factor, a product or this times its gradient is not a normal number of
# single or double precision. `product` may be NULL; `whole` has room for one row.
cdef bint by_division(
    int type_num, const char* g, const char* x, const char* t, const char* product, char* result,
    char* whole, const npy_intp* lines, const npy_intp* starts, npy_intp n_slices) noexcept nogil
