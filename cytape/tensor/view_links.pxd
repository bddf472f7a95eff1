# Link: the relation of a tensor to others that NumPy would have made views of the same memory.
#
#     u = zeros(9)                  origin NULL
#     left = u[:-2]                 origin link of u,    op GetItem, attrs slice(None, -2)
#     rows = left.reshape(7, 1)     origin link of left, op Reshape, attrs {"shape": (7, 1)}
#
# The links of live tensors form a ring: a write to one tensor makes the others anew, by their ops
# (ops/updates/views). The link of an origin outlives it.

from cpython.ref cimport PyObject
from libc.stdint cimport int64_t

cdef enum Kind:
    UNKNOWN              # ask NumPy
    VIEW
    COPY                 # in NumPy, as `reshape` makes some
    EITHER               # a view or a copy, by extents that only a run knows
    ALONE                # a view of memory that no other tensor sees; written to directly
    FOREIGN              # a view without an origin here, of read-only memory: of a variable

cdef struct Link:
    Py_ssize_t uses      # by the tensor, and by links whose origin it is
    PyObject* tensor     # borrowed; NULL once it is gone
    PyObject* spec       # the tensor's
    Link* previous
    Link* next           # itself, if it is alone
    Link* origin         # of the tensor that the op was called with; NULL: this is no view
    PyObject* op
    PyObject* attrs      # of the call; for IndexOp an index alone
    PyObject* inputs     # a tuple, the others of the call; NULL: there are none
    int output           # which of the results; -1: the only one
    Kind kind
    # The range of bytes, in C order, of the base that contains all elements of this view; for the
    # base itself, the range of all views taken.
    int64_t start, stop

cdef Link* new_link(PyObject* tensor, PyObject* spec) except NULL
cdef void forget(Link* link) noexcept  # by its tensor
cdef void cut(Link* link) noexcept     # from its origin, if it is no other's
