from cpython.mem cimport PyMem_Malloc
from cpython.ref cimport Py_INCREF, Py_XDECREF, PyObject

cdef Link* spare = NULL  # to be used again, in a list by `next`


cdef Link* new_link(PyObject* tensor, PyObject* spec) except NULL:
    global spare
    cdef Link* link = spare
    if link == NULL:
        link = <Link*>PyMem_Malloc(sizeof(Link))
        if link == NULL:
            raise MemoryError()
    else:
        spare = link.next
    Py_INCREF(<object>spec)
    link.uses, link.tensor, link.spec = 1, tensor, spec
    link.origin, link.op, link.attrs, link.inputs = NULL, NULL, NULL, NULL
    link.previous = link.next = link
    link.kind = UNKNOWN
    return link


cdef void leave_ring(Link* link) noexcept:
    link.previous.next, link.next.previous = link.next, link.previous
    link.previous = link.next = link


cdef void cut(Link* link) noexcept:
    cdef Link* origin = link.origin
    leave_ring(link)
    link.origin, link.kind = NULL, UNKNOWN
    release_call(link)
    release(origin)


cdef void forget(Link* link) noexcept:
    leave_ring(link)
    link.tensor = NULL
    release(link)


cdef void release_call(Link* link) noexcept:
    """Let go of what an op was called with."""
    cdef PyObject* op = link.op
    cdef PyObject* attrs = link.attrs
    cdef PyObject* inputs = link.inputs
    link.op = link.attrs = link.inputs = NULL
    Py_XDECREF(op)
    Py_XDECREF(attrs)
    Py_XDECREF(inputs)


cdef void release(Link* link) noexcept:
    """Give up one use of a link, and of those that it was the last use of."""
    global spare
    cdef Link* origin
    while link != NULL:
        link.uses -= 1
        if link.uses:
            break
        origin = link.origin
        release_call(link)
        Py_XDECREF(link.spec)
        link.next, spare = spare, link
        link = origin
