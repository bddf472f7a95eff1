# Reachable: objects that a function can access, found without running users' code.

cdef class Reachable:
    cdef readonly list functions    # (function, its first arguments), the nearest first
    cdef readonly dict generators   # by id
    cdef readonly dict states       # states of generators when they were found, by id
    cdef readonly set seen          # ids of visited objects
    cdef set known_names            # of attributes and globals, in the functions
    cdef list new_names             # tuples of names not among these yet
    cdef dict looked_up             # by the id of a class: names that were looked up in it
    cdef list values                # visited objects, then those to visit
    cpdef list moved(self)
    cdef set all_names(self)
    cdef int look_at(self, value) except -1
    cdef int look_at_object(self, value) except -1
    cdef int look_at_classes(self, value, kind) except -1
    cdef int add(self, function, tuple arguments) except -1
    cdef int add_items(self, container, items, plain) except -1

cpdef tuple state_of(generator)
cpdef dict contents(module)
cpdef bint is_of_cytape(function) except -1
