# MatMulOp: the matrix product. Matrices and vectors of float32 or float64, and the two products of
# their backward pass, are computed by the loop of numpy.matmul: BLAS, which reads transposed
# operands in place. Outer products have a loop that can add to a gradient that has arrived. Other
# operands use the rules declared in matrix_products.py.

from cytape.tensor.values.spec cimport Spec
from cytape.tensor.values.value cimport Value
from numpy cimport npy_intp

from .multilinear_op cimport MultilinearOp

cdef struct Matrix:
    char* data
    npy_intp rows, columns
    npy_intp row_stride, column_stride
    npy_intp count, stride  # number of matrices, and bytes from one to the next

cdef class MatMulOp(MultilinearOp):
    cdef Value product(self, Value a, Value b, bint many_a, bint many_b)
    cdef object other_product(self, x, y)
