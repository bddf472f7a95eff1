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
# Replace the value; recorders that read variables are notified.
cdef int take_value(Variable variable, Value new) except -1
# Update a value in compiled code, after which it counts as new: the first returns the value to
# write to, which is the present one if nothing else refers to it or its memory; the second ends the
# update. No Python code may run between the calls.
cdef Value begin_write(Variable variable)
cdef int end_write(Variable variable, Value value) except -1
# Make the recorders that track an id track a value of the same tensor.
cdef int follow_as(id_t id, Value value) except -1
