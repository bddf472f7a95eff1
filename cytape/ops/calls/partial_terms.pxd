# Derivatives by partials that are called with arrays or tensors: their operands, and the products.

from cytape.tensor.values.spec cimport Spec
from cytape.tensor.values.value cimport Value

cdef object operand(x, Spec out, bint plain)
cdef object times(gradient, partial)
cdef object conjugate(partial)
# The tangents of a symbolic output in a batch of unknown extents or number.
cdef object unknown_batch(tuple partials, output, list inputs, Value out, list tangents)
