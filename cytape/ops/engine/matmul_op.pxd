# MatMulOp: the matrix product. Matrices and vectors of float32 or float64 go straight to the loop
# behind numpy.matmul, that is to BLAS, which reads transposed operands in place; so do the two
# products of the backward pass. Outer products have a loop of their own, which can add to what has
# arrived. All else is left to the rules declared in linalg.

from cytape.tensor.values.spec cimport Spec
from cytape.tensor.values.value cimport Value
from numpy cimport npy_intp

from .multilinear_op cimport MultilinearOp

cdef struct Matrix:
    char* data
    npy_intp rows, columns
    npy_intp row_stride, column_stride
    npy_intp count, stride  # of matrices, and from one to the next

cdef class MatMulOp(MultilinearOp):
    cdef Value product(self, Value a, Value b, bint many_a, bint many_b)
