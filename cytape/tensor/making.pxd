# Tensors of what users have: numbers, arrays, lists, other tensors, other libraries' arrays.

from .tensor cimport Tensor

cpdef Tensor constant(value, dtype=*, name=*)
cpdef Tensor convert_to_tensor(value, dtype=*)
