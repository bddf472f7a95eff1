# Variable: a handle whose value can be replaced. Tapes know it by its own id; the value that an op
# reads has another id.

from cytape.core.typedefs cimport id_t
from cytape.tensor.values.value cimport Value

from .tensor cimport Tensor

cdef class Variable(Tensor):
    cdef id_t variable_id
    cdef readonly bint trainable
    cdef readonly str name

# Notify recorders of a tensor or variable, in a trace or a recomputed call, that its value was
# taken.
cpdef int note_departure(Tensor tensor, str how) except -1
cdef Value read(Variable variable)  # its present value; recorders that track variables are notified
# Make the recorders that track an id track a value of the same tensor.
cdef int follow_as(id_t id, Value value) except -1
