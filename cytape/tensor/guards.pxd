# Ways out of the sight of tapes and graphs, and who stands there. A tensor is an object to the
# functions here, which get the value that it holds as well.

from numpy cimport ndarray

from .value cimport Value

# How values leave tensors on purpose, for messages.
cdef str ASKED, ASSIGNED
cdef object variable_type  # the subclass of tensors whose values can be replaced
# Other values of variables, which one thread sees: thread -> id of a variable -> value, tensor that
# holds it.
cdef dict views
cdef Value value_in_view(tensor, Value held)

cdef inline Value seen(tensor, Value held):
    """What a tensor holds for this thread."""
    return value_in_view(tensor, held) if views else held

# Data: for somebody who asked for them (those who followed them take note); for a decision, which
# has no derivative, but must not be made for a whole graph; and for somebody who may not know that
# they are a tensor's, which is an error if a recorder follows it.
cdef ndarray detached(tensor, Value held, str how)
cdef ndarray examined(tensor, Value held, str cause)
cdef bint is_recorded(tensor, Value held) except -1  # whether a recorder of this thread follows it
cdef ndarray converted(tensor, Value held, str cause)  # which the error names
# Raise a DetachedError if a tensor is being recorded, of which a function is to make something that
# will not be.
cdef int require_unrecorded(tensor, Value held, str maker) except -1
# Raise if it is not known how many elements a symbolic tensor has along its first axis.
cdef int known_extent(Value value) except -1
cdef object graph_of(Value held, str attribute)  # of a symbolic tensor, whose attribute this is
