# Link: what a tensor has to do with others that NumPy would have made views of the same memory.
#
#     u = zeros(9)                  origin NULL
#     left = u[:-2]                 origin link of u,    op GetItem, attrs slice(None, -2)
#     rows = left.reshape(7, 1)     origin link of left, op Reshape, attrs {"shape": (7, 1)}
#
# The links of those that live are a ring: a write to one has others made anew, by their ops
# (ops/updates/views). Of an origin that is gone, its link is left.

from cpython.ref cimport PyObject
from libc.stdint cimport int64_t

cdef enum Kind:
    UNKNOWN              # NumPy is to be asked
    VIEW
    COPY                 # in NumPy, as `reshape` makes some
    EITHER               # a view or a copy, by extents that only a run knows
    ALONE                # a view of what nobody else sees; it is written to itself
    FOREIGN              # a view, without an origin here, of what no write can go to: of a variable

cdef struct Link:
    Py_ssize_t uses      # by the tensor, and by links whose origin it is
    PyObject* tensor     # borrowed; NULL once it is gone
    PyObject* spec       # the tensor's
    Link* previous
    Link* next           # itself, if it is alone
    Link* origin         # of what the op was called with; NULL: this is no view
    PyObject* op
    PyObject* attrs      # of the call; for IndexOp an index alone
    PyObject* inputs     # a tuple, the others of the call; NULL: there are none
    int output           # which of the results; -1: the only one
    Kind kind
    # Between which bytes, in C order, of what is no view all elements of this one lie; of that
    # itself: those of all views that were taken.
    int64_t start, stop

cdef Link* new_link(PyObject* tensor, PyObject* spec) except NULL
cdef void forget(Link* link) noexcept  # by its tensor
cdef void cut(Link* link) noexcept     # from its origin, if it is no other's
