from cpython.ref cimport Py_INCREF, PyObject

from .view_links cimport FOREIGN, VIEW, Link, new_link


cdef int note_region(Tensor view, Tensor origin, op, index, int64_t start, int64_t stop) except -1:
    cdef Link* link = noted(view, origin, op, index)
    cdef Link* of
    if link == NULL:
        return 0
    of = link.origin
    link.output, link.kind = -1, VIEW
    if of.origin == NULL:
        link.start, link.stop = start, stop
        of.start, of.stop = min(of.start, start), max(of.stop, stop)
    return 0


cdef int note_view(Tensor view, Tensor origin, op, attrs, tuple inputs=None,
                   int output=-1) except -1:
    cdef Link* link = noted(view, origin, op, attrs)
    cdef Link* of
    if link == NULL:
        return 0
    of = link.origin
    link.output = output
    if inputs is not None:
        link.inputs = owned(inputs)
    if of.origin == NULL:
        link.start = of.start = 0
        link.stop = of.stop = LAST
    return 0


cdef int note_foreign(Tensor view) except -1:
    view.link = new_link(<PyObject*>view, <PyObject*>view.held.spec)
    view.link.kind = FOREIGN
    return 0


cdef Link* noted(Tensor view, Tensor origin, op, attrs) except? NULL:
    """Return a link in the ring of its origin, with the same range of bytes.

    Return NULL if the origin is a scalar in NumPy, which has no views.
    """
    cdef Link* of = origin.link
    cdef Link* link
    if of == NULL:
        if origin.held.spec.ndim == 0:
            view.held.is_part = False
            return NULL
        of = origin.link = new_link(<PyObject*>origin, <PyObject*>origin.held.spec)
        if origin.held.is_part:
            of.kind = FOREIGN
    if of.next == of and of.origin == NULL:  # its views are gone
        of.start, of.stop = LAST, 0
    link = view.link = new_link(<PyObject*>view, <PyObject*>view.held.spec)
    link.origin, link.op, link.attrs = of, owned(op), owned(attrs)
    of.uses += 1
    link.start, link.stop = of.start, of.stop
    link.previous, link.next = of, of.next
    of.next.previous = link
    of.next = link
    return link


cdef PyObject* owned(x) noexcept:
    Py_INCREF(x)
    return <PyObject*>x


cdef bint is_foreign(Tensor tensor) noexcept:
    """Return whether a tensor is a view, or a copy of a view, of read-only memory."""
    cdef Link* link = tensor.link
    if link == NULL:
        return False
    while link.origin != NULL:
        link = link.origin
    return link.kind == FOREIGN


cdef bint has_views(Tensor tensor) noexcept:
    """Return whether a tensor has live views or other views of its base."""
    return tensor.link != NULL and tensor.link.next != tensor.link


cdef bint may_share(Tensor tensor, int64_t start, int64_t stop) noexcept:
    """Return whether a view of a tensor may overlap with a range of its bytes."""
    cdef Link* own = tensor.link
    cdef Link* link = own.next
    if own.origin != NULL:  # ranges of views are relative to the base
        return own.next != own
    if own.stop <= start or stop <= own.start:
        return False
    while link != own:
        if start < link.stop and link.start < stop:
            return True
        link = link.next
    return False
