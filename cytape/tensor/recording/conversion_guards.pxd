# Guards of conversions of tensors to arrays and numbers, which note the conversion or raise an
# error. Each function takes a tensor as an object, and its value.

from numpy cimport ndarray

from cytape.tensor.values.value cimport Value

# Explicit ways of taking values, for messages.
cdef str ASKED, ASSIGNED
cdef object variable_type  # the subclass of tensors whose values can be replaced
# Values of variables that only one thread sees: thread -> id of a variable -> value, its tensor.
cdef dict views
cdef Value value_in_view(tensor, Value held)

cdef inline Value seen(tensor, Value held):
    """Return the value that a tensor holds for this thread."""
    return value_in_view(tensor, held) if views else held

# Data of a tensor, for three purposes: an explicit request (recorders that track the tensor note
# it); a decision, which has no derivative but must not be made for a whole graph; and an implicit
# conversion, which is an error if a recorder tracks the tensor.
cdef ndarray detached(tensor, Value held, str how)
cdef ndarray examined(tensor, Value held, str cause)
cdef bint is_recorded(tensor, Value held) except -1  # whether a recorder of this thread tracks it
cdef ndarray converted(tensor, Value held, str cause)  # the error names the cause
# Raise a DetachedError if a tensor is being recorded and a function makes an unrecorded object from
# it.
cdef int require_unrecorded(tensor, Value held, str maker) except -1
# Raise if the first extent of a symbolic tensor is unknown.
cdef int known_extent(Value value) except -1
cdef object graph_of(Value held, str attribute)  # raises if not symbolic
