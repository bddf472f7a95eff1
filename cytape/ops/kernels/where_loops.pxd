# Loops of numpy.where: each element is selected from one of two operands.
#
# The loops have no branch that depends on the data: both elements are read, and bits are masked.

from cytape.tensor.values.spec cimport Spec
from cytape.tensor.values.value cimport Value

from .ufunc_loops cimport Loop

# Operands: a boolean condition, the values where it is true, the values elsewhere, the result; any
# may be strided. NULL: no loop for this item size.
cdef Loop* select_loop(int itemsize) noexcept nogil

# Select from values that are broadcast to a spec, whose dtype x and y have; None stands for zeros.
# The result goes into a value (None: a new one) that may be x or y. Returns None if there is no
# loop, if shapes do not fit, or, with as_numpy, if NumPy is faster for this layout.
cdef Value selected(Value condition, Value x, Value y, Spec spec, Value into, bint as_numpy)
