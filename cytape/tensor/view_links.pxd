# Link: the relation between tensors that NumPy would have made views of the same memory.
#
#     u = zeros(9)                  origin NULL
#     left = u[:-2]                 origin link of u,    op GetItem, attrs slice(None, -2)
#     rows = left.reshape(7, 1)     origin link of left, op Reshape, attrs {"shape": (7, 1)}
#
# The links of live tensors form a ring: after a write to one tensor the others are recomputed by
# their ops (ops/updates/written_views.pyx). The link of an origin lives longer than the origin.

from cpython.ref cimport PyObject
from libc.stdint cimport int64_t

cdef enum Kind:
    UNKNOWN              # ask NumPy
    VIEW
    COPY                 # in NumPy, as `reshape` makes some
    EITHER               # a view or a copy, depending on extents at run time
    ALONE                # a view of memory that no other tensor shares; written to directly
    FOREIGN              # a view of read-only memory, of a variable, without an origin

cdef struct Link:
    Py_ssize_t uses      # by the tensor, and by links whose origin it is
    PyObject* tensor     # borrowed; NULL once it is gone
    PyObject* spec       # the tensor's
    Link* previous
    Link* next           # itself, if it is alone
    Link* origin         # of the tensor that the op was called with; NULL: not a view
    PyObject* op
    PyObject* attrs      # of the call; for IndexOp an index alone
    PyObject* inputs     # a tuple, the other inputs of the call; NULL: none
    int output           # position among the results; -1: the only one
    Kind kind
    # The range of bytes, in C order, of the base that contains all elements of this view; for the
    # base itself, the range of all views taken.
    int64_t start, stop

cdef Link* new_link(PyObject* tensor, PyObject* spec) except NULL
cdef void forget(Link* link) noexcept  # called by its tensor
cdef void cut(Link* link) noexcept     # from its origin, if no other link needs it
