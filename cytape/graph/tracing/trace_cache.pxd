# Traces: the traces of a function, by key.

from .concrete_function cimport ConcreteFunction

cdef class Entry:
    cdef list keys               # of a trace; the first is the one that it was traced for
    cdef list references         # to the objects that the keys refer to by id
    cdef Py_ssize_t nbytes       # when room was last made for it

cdef class Traces:
    cdef readonly dict by_key    # key -> ConcreteFunction
    cdef dict entries            # ConcreteFunction -> Entry
    cdef object reference        # to this, weakly
    cdef readonly object max_traces, max_bytes
    cdef object __weakref__
    cdef int add(self, tuple key, ConcreteFunction trace, list objects) except -1
    cdef int add_alias(self, tuple key, ConcreteFunction trace, list objects) except -1
    cdef int discard(self, ConcreteFunction trace) except -1
    cdef int remove(self, tuple key) except -1
    cdef int make_room(self, ConcreteFunction used) except -1
    cdef object excess(self)     # of bytes over max_bytes
    cdef ConcreteFunction oldest(self, ConcreteFunction newest)  # of the other traces, or None
