# Tensors of what users have, and the way back: numbers, arrays, lists, other libraries' arrays.

from .tensor cimport Tensor

cpdef Tensor constant(value, dtype=*, name=*)
cpdef Tensor convert_to_tensor(value, dtype=*)
