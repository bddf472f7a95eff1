# Variable: a handle whose value can be replaced. Its own id stands for it on every tape; the value
# that an op reads may have another id.

from cytape.core.typedefs cimport id_t
from cytape.tensor.values.value cimport Value

from .tensor cimport Tensor

cdef class Variable(Tensor):
    cdef id_t variable_id
    cdef readonly bint trainable
    cdef readonly str name

# Tell recorders of a tensor or variable that its value left it, in a trace or a recomputed call.
cpdef int note_departure(Tensor tensor, str how) except -1
cdef Value read(Variable variable)  # its present value; recorders that track variables are notified
# Make the recorders that track an id track a value that is another name for it.
cdef int follow_as(id_t id, Value value) except -1
