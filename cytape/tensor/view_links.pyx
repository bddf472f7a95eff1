from cpython.mem cimport PyMem_Malloc
from cpython.ref cimport Py_INCREF, Py_XDECREF, PyObject

cdef Link* spare = NULL  # free links, in a list by `next`


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


cdef void forget(Link* link) noexcept:
    link.previous.next, link.next.previous = link.next, link.previous
    link.tensor = NULL
    release(link)


cdef void cut(Link* link) noexcept:
    cdef Link* origin = link.origin
    cdef PyObject* op = link.op
    cdef PyObject* attrs = link.attrs
    cdef PyObject* inputs = link.inputs
    link.previous.next, link.next.previous = link.next, link.previous
    link.previous = link.next = link
    link.origin, link.op, link.attrs, link.inputs = NULL, NULL, NULL, NULL
    link.kind = UNKNOWN
    Py_XDECREF(op)
    Py_XDECREF(attrs)
    Py_XDECREF(inputs)
    release(origin)


cdef inline void release(Link* link) noexcept:
    """Release a use of a link, and recursively the origins that have no other use."""
    global spare
    cdef Link* origin
    while link != NULL:
        link.uses -= 1
        if link.uses:
            break
        origin = link.origin
        Py_XDECREF(link.op)
        Py_XDECREF(link.attrs)
        Py_XDECREF(link.inputs)
        Py_XDECREF(link.spec)
        link.next, spare = spare, link
        link = origin
