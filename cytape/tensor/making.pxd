# Conversions: numbers, arrays, lists and other libraries' arrays to tensors, and back.

from .tensor cimport Tensor

cpdef Tensor convert_to_tensor(value, dtype=*)
