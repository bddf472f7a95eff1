# numpy.where in memory: elements of one operand or another.
#
# The loops have no branch that depends on the data: both elements are read, and bits are masked.

from cytape.tensor.values.spec cimport Spec
from cytape.tensor.values.value cimport Value

from .ufunc_loops cimport Loop

# The operands are a boolean condition, what is taken where it holds, what is taken elsewhere, and
# the result; any of them may be strided. NULL: there is none for elements of that size.
cdef Loop* select_loop(int itemsize) noexcept nogil

# The same for values that are broadcast to a spec, whose dtype x and y have; either may be None:
# zeros. The result goes into a value (None: a new one) that may be x or y. None: there is no loop,
# or the shapes do not fit; or, if as_numpy, NumPy would do better with operands laid out like that.
cdef Value selected(Value condition, Value x, Value y, Spec spec, Value into, bint as_numpy)
