# Reachable: what a function has a way to, found without running anything of a user's.

cdef class Reachable:
    cdef readonly list functions    # (function, its first arguments), the nearest first
    cdef readonly dict generators   # by id
    cdef readonly dict states       # of these when they were found, by id
    cdef readonly set seen          # ids of what has been looked at
    cdef set known_names            # of attributes and globals, in the functions
    cdef list new_names             # tuples of those that are not among them yet
    cdef dict looked_up             # by the id of a class: those names that were looked up there
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
